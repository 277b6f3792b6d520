import type { components, operations } from "./schema.js";

/** The name of an operation of the API, such as "recordSale". */
export type Operation = keyof operations;

type Success<Responses> = Responses extends Record<number, unknown>
  ? { [Status in keyof Responses & (200 | 201 | 202)]: Responses[Status] }[keyof Responses & (200 | 201 | 202)]
  : never;
type JSONOf<Answer> = Answer extends { content: { "application/json": infer Body } } ? Body : never;

/** The data of an operation's answer. */
export type Data<Op extends Operation> = JSONOf<Success<operations[Op]["responses"]>> extends infer Answer
  ? Answer extends { data: infer D }
    ? D
    : undefined
  : never;

/** What an operation is sent. */
export type Body<Op extends Operation> = NonNullable<operations[Op]["requestBody"]> extends { content: { "application/json": infer B } } ? B : never;

/** The parameters of an operation's query string. */
export type Query<Op extends Operation> = NonNullable<operations[Op]["parameters"]["query"]>;

type Schemas = components["schemas"];

export type Seller = Schemas["MarketplaceSeller"];
export type Sale = Schemas["Sale"];
export type NewSale = Schemas["NewSale"];
export type Refund = Schemas["Refund"];
export type NewRefund = Schemas["NewRefund"];
export type SaleResult = Data<"recordSales">["results"][number];
export type Balance = Data<"sellerBalance">;
export type Explanation = Data<"explainSeller">;
export type BankAccount = Data<"registerSellerBankAccount">;
export type NewBankAccount = Schemas["BankAccountRegistration"];
export type Payout = Schemas["Payout"];
export type RequestedPayout = Data<"requestSellerPayout">;
export type SessionLink = Data<"createSessionLink">;
export type Endpoint = Schemas["WebhookEndpoint"];
export type NewEndpoint = Body<"addEndpoint">;
export type EndpointChange = Body<"changeEndpoint">;
/** With its secret, which is shown once. */
export type EndpointWithSecret = Schemas["NewWebhookEndpoint"];
export type Delivery = Schemas["WebhookDelivery"];
export type TestResult = Data<"testEndpoint">;
export type EventType = Schemas["EventType"];

/** What each event has beside its object. */
export interface Change {
  sellerId: string;
  /** The marketplace's own id of the seller, if it has one. */
  externalId?: string | null;
  /** Numbers the changes of one seller: the event with the higher number is the later one. */
  entry: number;
  /** The seller's balances after the event. */
  balance: { available: number; pending: number; inTransit: number };
}

/** Stands for an object whose seller's records were changed outside the service. Read the event again once they are repaired. */
export interface Tampered {
  sellerId: string;
  tampered: true;
}

type BankAccountObject = Schemas["BankAccount"];
type SaleObject = Omit<Sale, "externalId">;

/** Fails to compile when an event of the API has a member beside its object that Change lacks. */
type Members = keyof { [Name in keyof Schemas["Event"]["data"] as string extends Name ? never : number extends Name ? never : Name]: true };
const changeIsWhole: [Exclude<Members, keyof Change>] extends [never] ? true : never = true;
void changeIsWhole;

interface DataByType {
  "seller.registered": Pick<Seller, "sellerId" | "externalId" | "name" | "email" | "createdAt">;
  "bank_account.added": BankAccountObject & Change;
  "bank_account.verified": BankAccountObject & Change;
  "bank_account.rejected": BankAccountObject & Change;
  "bank_account.review": BankAccountObject & Change;
  "sale.recorded": SaleObject & Change;
  "sale.released": SaleObject & Change;
  "sale.refunded": SaleObject & Change & { refund: { refundId: string; amount: number } };
  "payout.requested": Payout & Change;
  "payout.submitted": Payout & Change;
  "payout.review": Payout & Change;
  "payout.updated": Payout & Change;
  "payout.completed": Payout & Change;
  "payout.failed": Payout & Change;
  "payout.cancelled": Payout & Change;
  "payout.returned": Payout & Change;
  "balance.adjusted": Schemas["Adjustment"] & Change;
  "balance.negative": Change;
}

/** Fails to compile when the API has a type of events that is not listed above, or lacks one. */
type Listed = [EventType, keyof DataByType] extends [keyof DataByType, EventType] ? EventType : never;

type EventOf<Type extends EventType> = Type extends Listed
  ? {
      /** The same in the feed and in each delivery. */
      id: string;
      type: Type;
      timestamp: string;
      /** The object as it was after the event. `tampered` is there only if it can't be shown. */
      data: (DataByType[Type] & { tampered?: undefined }) | Tampered;
    }
  : never;

/** Something that happened. `type` says what `data` is. */
export type DeliveredEvent = { [Type in EventType]: EventOf<Type> }[EventType];

/** An event of the feed, with its place there: of any type, or of one of those that are named. */
export type FeedEvent<Type extends EventType = EventType> = Extract<DeliveredEvent, { type: Type }> & {
  /** 1, 2, 3 … without a gap. */
  number: number;
};

/** What an endpoint is sent to test it. */
export interface Ping {
  id: string;
  type: "ping";
  timestamp: string;
  data: { endpointId: string };
}
