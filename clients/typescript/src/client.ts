import { type CallOptions, type Options, type Request, sleep, Transport } from "./http.js";
import { SellerClient } from "./seller.js";
import type {
  Balance,
  BankAccount,
  Body,
  Data,
  Delivery,
  Endpoint,
  EndpointChange,
  EndpointWithSecret,
  EventType,
  Explanation,
  FeedEvent,
  NewBankAccount,
  NewEndpoint,
  NewRefund,
  NewSale,
  Refund,
  RequestedPayout,
  Sale,
  SaleResult,
  Seller,
  SessionLink,
  TestResult,
} from "./types.js";

export interface BursarOptions extends Options {
  /** A service key: `bursar apikey create --name NAME` makes one. Without it only `register`, `login` and `seller` work. */
  key?: string | undefined;
}

export interface Page extends CallOptions {
  /** Which page, from 1. */
  page?: number;
  /** How many on a page: 50 at most. */
  limit?: number;
}

export interface PayoutOptions extends CallOptions {
  /**
   * Names the request: the same key with the same request gets the first answer for seven days. Without it the client makes one,
   * which makes this call's own repeats safe. Keep one of your own with the order to pay if your program may end and begin again.
   */
  idempotencyKey?: string;
}

export interface EventOptions<Type extends EventType = EventType> extends CallOptions {
  /** The `number` of the last event that you handled; 0, from the first, by default. */
  after?: number;
  /** All types by default. */
  types?: Type[];
}

/** A part of the feed. */
export interface EventsPage<Type extends EventType = EventType> {
  events: FeedEvent<Type>[];
  /** For `after` of the next page: it is past events of other types, too. */
  next: number;
}

/** How many sales one request may have. */
const maxBatch = 500;

/** How long `follow` waits at the end of the feed, in milliseconds. */
const pause = 2000;

/** Names a seller by the marketplace's own id, wherever a seller's id is asked for. */
export function externalId(id: string): string {
  return `ext:${id}`;
}

/** Bursar, as a marketplace's server uses it. */
export class Bursar {
  readonly #options: BursarOptions;
  readonly #transport: Transport;

  constructor(options: BursarOptions) {
    this.#options = options;
    this.#transport = new Transport(options, options.key);
  }

  // Sellers.

  /** Makes a seller. The same again changes nothing; other values under the same id fail with "seller_conflict". Scope: sellers:write. */
  createSeller(seller: Body<"createSeller">, options?: CallOptions): Promise<Seller> {
    return this.#transport.call<"createSeller">({ method: "POST", path: ["marketplace", "sellers"], body: seller, repeatable: true }, options);
  }

  /** Reads a seller, by Bursar's id or by `externalId(…)`, as every method does that takes a seller. Scope: sellers:read. */
  getSeller(seller: string, options?: CallOptions): Promise<Seller> {
    return this.#transport.call<"seller">(ofSeller("GET", seller), options);
  }

  /** Reads all sellers, in the order of their ids. Scope: sellers:read. */
  async *sellers(options: CallOptions = {}): AsyncGenerator<Seller, void, undefined> {
    for (let after: string | undefined; ; ) {
      const page: Data<"sellers"> = await this.#transport.call<"sellers">(
        { method: "GET", path: ["marketplace", "sellers"], query: { after }, repeatable: true },
        options,
      );
      yield* page.sellers;
      if (page.next === undefined) return;
      after = page.next;
    }
  }

  /** Says how many products a seller has listed. Scope: sellers:write. */
  async setProductsListed(seller: string, productsListed: number, options?: CallOptions): Promise<void> {
    await this.#transport.call<"setSeller">({ ...ofSeller("PUT", seller), body: { productsListed } }, options);
  }

  /** Reads a seller's balance. Scope: balances:read. */
  balance(seller: string, options?: CallOptions): Promise<Balance> {
    return this.#transport.call<"sellerBalance">(ofSeller("GET", seller, "balance"), options);
  }

  /** Says where a seller's money is, and what blocks a payout. Scope: balances:read. */
  explain(seller: string, options?: CallOptions): Promise<Explanation> {
    return this.#transport.call<"explainSeller">(ofSeller("GET", seller, "explain"), options);
  }

  /**
   * Adds a bank account for a seller, in place of an earlier one, and starts its verification. If the answer was lost, it is not
   * sent again: look at `balance` first. Scope: sellers:write.
   */
  registerBankAccount(seller: string, account: NewBankAccount, options?: CallOptions): Promise<BankAccount> {
    return this.#transport.call<"registerSellerBankAccount">(
      { ...ofSeller("PUT", seller, "bank-account"), body: account, repeatable: false },
      options,
    );
  }

  /** Makes a link that signs a seller's browser in: redirect it there at once. It works once, within 60 seconds. Scope: sellers:write. */
  sessionLink(seller: string, options?: CallOptions): Promise<SessionLink> {
    return this.#transport.call<"createSessionLink">(ofSeller("POST", seller, "session"), options);
  }

  // Sales.

  /** Records a sale. The same again changes nothing; other values under the same id fail with "sale_conflict". Scope: sales:write. */
  recordSale(sale: NewSale, options?: CallOptions): Promise<Sale> {
    return this.#transport.call<"recordSale">({ method: "POST", path: ["marketplace", "sales"], body: sale, repeatable: true }, options);
  }

  /**
   * Records any number of sales, 500 in a request, and returns what became of each, in order. A sale that is refused harms no
   * other. If a request fails, all may be sent again. Scope: sales:write.
   */
  async recordSales(sales: readonly NewSale[], options?: CallOptions): Promise<SaleResult[]> {
    const results: SaleResult[] = [];
    for (let from = 0; from < sales.length; from += maxBatch) {
      const answer = await this.#transport.call<"recordSales">(
        { method: "POST", path: ["marketplace", "sales:batch"], body: { sales: sales.slice(from, from + maxBatch) }, repeatable: true },
        options,
      );
      results.push(...answer.results);
    }
    return results;
  }

  /** Takes back what a seller earned from a sale: all that is left of it without an amount. The same again changes nothing. Scope: sales:write. */
  refundSale(saleId: string, refund: NewRefund, options?: CallOptions): Promise<Refund> {
    return this.#transport.call<"refundSale">(
      { method: "POST", path: ["marketplace", "sales", saleId, "refund"], body: refund, repeatable: true },
      options,
    );
  }

  /** Corrects a seller's balance, which may fall below zero by it. The same again changes nothing. Scope: sellers:write. */
  adjustBalance(seller: string, adjustment: Body<"adjustBalance">, options?: CallOptions): Promise<Data<"adjustBalance">> {
    return this.#transport.call<"adjustBalance">(
      { method: "POST", path: ["admin", "sellers", seller, "adjustments"], body: adjustment, repeatable: true },
      options,
    );
  }

  /** Reads one page of a seller's sales, newest first. Scope: balances:read. */
  sales(seller: string, { page, limit, ...options }: Page = {}): Promise<Data<"sellerSales">> {
    return this.#transport.call<"sellerSales">({ ...ofSeller("GET", seller, "sales"), query: { page, limit } }, options);
  }

  // Payouts.

  /** Withdraws a seller's money to their verified bank account: once, however often it is sent. Scope: payouts:write. */
  requestPayout(seller: string, payout: Body<"requestSellerPayout">, options: PayoutOptions = {}): Promise<RequestedPayout> {
    const { idempotencyKey = crypto.randomUUID(), ...rest } = options;
    return this.#transport.call<"requestSellerPayout">({ ...ofSeller("POST", seller, "payouts"), body: payout, idempotencyKey }, rest);
  }

  /** Reads one page of a seller's payouts, newest first. Scope: payouts:read. */
  payouts(
    seller: string,
    { page, limit, status, ...options }: Page & { status?: "all" | "processing" | "completed" | "failed" | "cancelled" } = {},
  ): Promise<Data<"sellerPayouts">> {
    return this.#transport.call<"sellerPayouts">({ ...ofSeller("GET", seller, "payouts"), query: { page, limit, status } }, options);
  }

  // Events.

  /** Reads one page of the feed, oldest first. `next` is for `after` of the following one. Scope: events:read. */
  eventsPage<Type extends EventType = EventType>({ after = 0, types, ...options }: EventOptions<Type> = {}): Promise<EventsPage<Type>> {
    const request: Request = { method: "GET", path: ["events"], query: { after, type: types?.join(",") }, repeatable: true };
    return this.#transport.call<"events">(request, options) as Promise<unknown> as Promise<EventsPage<Type>>;
  }

  /** Reads the feed up to its end. Store the `number` of an event together with what you made of it, and go on with it as `after`. */
  events<Type extends EventType = EventType>(options: EventOptions<Type> = {}): AsyncGenerator<FeedEvent<Type>, void, undefined> {
    return this.#feed(options, false);
  }

  /** Reads the feed, and goes on as it grows, looking every two seconds, until `signal` ends it or a request fails for good. */
  follow<Type extends EventType = EventType>(options: EventOptions<Type> = {}): AsyncGenerator<FeedEvent<Type>, void, undefined> {
    return this.#feed(options, true);
  }

  async *#feed<Type extends EventType>(
    { after = 0, ...options }: EventOptions<Type>,
    goesOn: boolean,
  ): AsyncGenerator<FeedEvent<Type>, void, undefined> {
    for (;;) {
      const page: EventsPage<Type> = await this.eventsPage<Type>({ ...options, after });
      yield* page.events;
      if (page.next === after) {
        if (!goesOn) return;
        await sleep(pause, options.signal);
      }
      after = page.next;
    }
  }

  // Webhooks. Scope: webhooks:write.

  /** Has events delivered to a server from now on. Keep the `secret` of the answer: it is shown once. */
  addEndpoint(endpoint: NewEndpoint, options?: CallOptions): Promise<EndpointWithSecret> {
    return this.#transport.call<"addEndpoint">({ method: "POST", path: endpoints(), body: endpoint, repeatable: false }, options);
  }

  /** Lists all endpoints, the oldest first. */
  async endpoints(options?: CallOptions): Promise<Endpoint[]> {
    return (await this.#transport.call<"listEndpoints">({ method: "GET", path: endpoints(), repeatable: true }, options)).endpoints;
  }

  /** Reads one endpoint. */
  endpoint(id: string, options?: CallOptions): Promise<Endpoint> {
    return this.#transport.call<"getEndpoint">({ method: "GET", path: endpoints(id), repeatable: true }, options);
  }

  /** Changes, disables or enables an endpoint. What is absent stays. */
  changeEndpoint(id: string, change: EndpointChange, options?: CallOptions): Promise<Endpoint> {
    return this.#transport.call<"changeEndpoint">({ method: "PATCH", path: endpoints(id), body: change, repeatable: true }, options);
  }

  /** Ends deliveries to an endpoint. */
  async removeEndpoint(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.call<"removeEndpoint">({ method: "DELETE", path: endpoints(id), repeatable: false }, options);
  }

  /** Gives an endpoint another secret. For a day deliveries are signed with both. */
  rotateSecret(id: string, options?: CallOptions): Promise<EndpointWithSecret> {
    return this.#transport.call<"rotateEndpointSecret">({ method: "POST", path: endpoints(id, "rotate-secret"), repeatable: false }, options);
  }

  /** Sends an event of type "ping" and waits for the answer. */
  testEndpoint(id: string, options?: CallOptions): Promise<TestResult> {
    return this.#transport.call<"testEndpoint">({ method: "POST", path: endpoints(id, "test"), repeatable: false }, options);
  }

  /** Reads deliveries, the newest first. They are kept for 30 days. */
  async *deliveries({
    signal,
    ...filter
  }: CallOptions & { endpoint?: string; event?: string; status?: "pending" | "delivered" | "failed" } = {}): AsyncGenerator<Delivery, void, undefined> {
    for (let before: string | undefined; ; ) {
      const page: Data<"deliveries"> = await this.#transport.call<"deliveries">(
        { method: "GET", path: ["webhooks", "deliveries"], query: { ...filter, before }, repeatable: true },
        signal === undefined ? {} : { signal },
      );
      yield* page.deliveries;
      if (page.next === null) return;
      before = page.next;
    }
  }

  /** Sends an event again, or the range up to `through`, and returns how many deliveries that makes. */
  async redeliver(eventId: string, to: { endpointId?: string; through?: string } = {}, options?: CallOptions): Promise<number> {
    const request: Request = { method: "POST", path: ["webhooks", "events", eventId, "redeliver"], body: to, repeatable: false };
    return (await this.#transport.call<"redeliver">(request, options)).queued;
  }

  // Sellers who sign in themselves.

  /** Registers a user, who is signed in then: `seller(answer.token)`. */
  register(user: Body<"register">, options?: CallOptions): Promise<Data<"register">> {
    return new Transport(this.#options, undefined).call<"register">({ method: "POST", path: ["auth", "register"], body: user, repeatable: false }, options);
  }

  /** Signs a user in. A second factor is asked for with the error "second_factor_required". */
  login(credentials: Body<"login">, options?: CallOptions): Promise<Data<"login">> {
    return new Transport(this.#options, undefined).call<"login">({ method: "POST", path: ["auth", "login"], body: credentials, repeatable: false }, options);
  }

  /** What a seller may do with their own access token. */
  seller(token: string): SellerClient {
    return new SellerClient(new Transport(this.#options, token));
  }
}

function ofSeller(method: Request["method"], seller: string, ...rest: string[]): Request {
  return { method, path: ["marketplace", "sellers", seller, ...rest], repeatable: true };
}

function endpoints(...rest: string[]): string[] {
  return ["webhooks", "endpoints", ...rest];
}
