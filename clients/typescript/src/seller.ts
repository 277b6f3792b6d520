import type { CallOptions, Transport } from "./http.js";
import type { Page, PayoutOptions } from "./client.js";
import type { Body, Data, NewBankAccount } from "./types.js";

/** Bursar, as a seller uses it with an access token. */
export class SellerClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Reads who is signed in. */
  me(options?: CallOptions): Promise<Data<"me">> {
    return this.#transport.call<"me">({ method: "GET", path: ["auth", "me"], repeatable: true }, options);
  }

  /** Ends the session: the token works no more. */
  async logout(options?: CallOptions): Promise<void> {
    await this.#transport.call<"logout">({ method: "POST", path: ["auth", "logout"], repeatable: false }, options);
  }

  balance(options?: CallOptions): Promise<Data<"balance">> {
    return this.#transport.call<"balance">({ method: "GET", path: ["payouts", "balance"], repeatable: true }, options);
  }

  /** Says where the money is, and what blocks a payout. */
  explain(options?: CallOptions): Promise<Data<"explain">> {
    return this.#transport.call<"explain">({ method: "GET", path: ["payouts", "explain"], repeatable: true }, options);
  }

  bankAccount(options?: CallOptions): Promise<Data<"bankAccount">> {
    return this.#transport.call<"bankAccount">({ method: "GET", path: ["bank-account"], repeatable: true }, options);
  }

  /** Adds a bank account in place of an earlier one, and starts its verification. */
  registerBankAccount(account: NewBankAccount, options?: CallOptions): Promise<Data<"registerBankAccount">> {
    return this.#transport.call<"registerBankAccount">({ method: "PUT", path: ["bank-account"], body: account, repeatable: false }, options);
  }

  /** Withdraws to the verified bank account: once, however often it is sent. */
  requestPayout(payout: Body<"requestPayout">, options: PayoutOptions = {}): Promise<Data<"requestPayout">> {
    const { idempotencyKey = crypto.randomUUID(), ...rest } = options;
    return this.#transport.call<"requestPayout">(
      { method: "POST", path: ["payouts", "request"], body: payout, idempotencyKey, repeatable: true },
      rest,
    );
  }

  /** Cancels a payout that was not sent yet. */
  cancelPayout(payoutId: string, options: PayoutOptions = {}): Promise<Data<"cancelPayout">> {
    const { idempotencyKey = crypto.randomUUID(), ...rest } = options;
    return this.#transport.call<"cancelPayout">({ method: "POST", path: ["payouts", payoutId, "cancel"], idempotencyKey, repeatable: true }, rest);
  }

  payout(payoutId: string, options?: CallOptions): Promise<Data<"payout">> {
    return this.#transport.call<"payout">({ method: "GET", path: ["payouts", payoutId], repeatable: true }, options);
  }

  /** Reads one page of the payouts, newest first. */
  payouts({ page, limit, ...options }: Page = {}): Promise<Data<"payoutHistory">> {
    return this.#transport.call<"payoutHistory">({ method: "GET", path: ["payouts", "history"], query: { page, limit }, repeatable: true }, options);
  }
}
