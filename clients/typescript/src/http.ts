import type { Data, Operation } from "./types.js";

/** The version of the API that this package was made for. */
export const apiVersion = "1";

export interface Options {
  /** The service's address, such as https://pay.example.com. */
  baseUrl: string;
  /** How often a request is sent at most; 4 by default, 1 for never again. */
  attempts?: number;
  /** How long one attempt may take, in milliseconds; 30,000 by default. */
  timeout?: number;
  /** The longest wait before another attempt, in milliseconds; 30,000 by default. If the service asks for more, the call fails. */
  maxWait?: number;
  /** Sends the requests; the global fetch by default. */
  fetch?: typeof fetch;
}

/** For one call. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
}

/** An answer that says no. */
export class BursarError extends Error {
  override readonly name = "BursarError";
  constructor(
    message: string,
    /** The HTTP status. */
    readonly status: number,
    /** A stable word for programs, such as "insufficient_balance". It is empty if the answer was not Bursar's but that of a proxy on the way. */
    readonly code: string,
    /** What is wrong with which field, if fields are at fault. */
    readonly details: Readonly<Record<string, string>>,
    /** Finds the request in the service's log. */
    readonly requestId: string | undefined,
    /** How many seconds the service asks to wait, if it does. */
    readonly retryAfter: number | undefined,
  ) {
    super(message);
  }
}

export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The segments of the path below /api. */
  path: string[];
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  idempotencyKey?: string;
  /** To send it twice has the effect of once, so it is sent again if its answer was lost. */
  repeatable: boolean;
}

const firstWait = 200;

/** Sends requests with one credential, or with none. */
export class Transport {
  readonly options: Options;
  readonly #base: string;
  readonly #credential: string | undefined;
  readonly #attempts: number;
  readonly #timeout: number;
  readonly #maxWait: number;
  readonly #fetch: typeof fetch;

  constructor(options: Options, credential: string | undefined) {
    const base = parseAddress(options.baseUrl);
    if (credential !== undefined && !/^[!-~]+$/.test(credential)) {
      throw new TypeError('the key must be a service key: "bursar apikey create --name NAME" makes one; and a token as signing in returned it');
    }
    this.options = options;
    this.#base = base;
    this.#credential = credential;
    this.#attempts = positive("attempts", options.attempts, 4);
    this.#timeout = positive("timeout", options.timeout, 30_000);
    this.#maxWait = positive("maxWait", options.maxWait, 30_000);
    this.#fetch = options.fetch ?? fetch;
  }

  /** Calls an operation, again where that may be, and returns the data of its answer. */
  async call<Op extends Operation>(request: Request, options: CallOptions = {}): Promise<Data<Op>> {
    const url = this.#base + "/api" + request.path.map(segment).join("") + queryOf(request.query);
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    for (let attempt = 1; ; attempt++) {
      options.signal?.throwIfAborted();
      try {
        return (await this.#once(url, request, body, options.signal)) as Data<Op>;
      } catch (failure) {
        const wait = options.signal?.aborted ? undefined : this.#waitAfter(failure, request, attempt);
        if (wait === undefined) {
          throw failure;
        }
        await sleep(wait, options.signal);
      }
    }
  }

  async #once(url: string, request: Request, body: string | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    const headers = new Headers({ accept: "application/json" });
    if (this.#credential !== undefined) headers.set("authorization", `Bearer ${this.#credential}`);
    if (body !== undefined) headers.set("content-type", "application/json");
    if (request.idempotencyKey !== undefined) headers.set("idempotency-key", request.idempotencyKey);
    const limit = AbortSignal.timeout(this.#timeout);
    const response = await this.#fetch(url, {
      method: request.method,
      headers,
      body: body ?? null,
      redirect: "manual",
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    const text = await response.text();
    const answer = parseAnswer(text);
    if (response.ok && answer?.success === true) {
      return answer.data;
    }
    throw failureOf(response, answer);
  }

  /** How long to wait before the next attempt, or undefined for no more. */
  #waitAfter(failure: unknown, request: Request, attempt: number): number | undefined {
    if (attempt >= this.#attempts) {
      return undefined;
    }
    const most = Math.min(firstWait * 2 ** (attempt - 1), this.#maxWait);
    const wait = most / 2 + (Math.random() * most) / 2; // so that many callers don't come back at once
    if (!(failure instanceof BursarError)) {
      return request.repeatable ? wait : undefined; // no answer
    }
    const busy = [502, 503, 504].includes(failure.status);
    if (failure.status !== 429 && !(busy && request.repeatable)) {
      return undefined;
    }
    const asked = (failure.retryAfter ?? 0) * 1000;
    return asked > this.#maxWait ? undefined : asked + wait;
  }
}

function parseAddress(text: string): string {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // the message below says what to do
  }
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new TypeError("baseUrl must be an address such as https://pay.example.com");
  }
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

function positive(name: string, value: number | undefined, otherwise: number): number {
  if (value !== undefined && !(value > 0)) {
    throw new RangeError(`${name} must be above zero`);
  }
  return value ?? otherwise;
}

/** An empty segment would be another route. */
function segment(text: string): string {
  if (text === "" || text === "." || text === ".." || text === "ext:") {
    throw new TypeError(`${JSON.stringify(text)} can't be an id`);
  }
  return "/" + encodeURIComponent(text).replaceAll("%3A", ":");
}

function queryOf(query: Request["query"]): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) given.set(name, String(value));
  }
  return given.size === 0 ? "" : `?${given}`;
}

interface Answer {
  success?: unknown;
  data?: unknown;
  error?: unknown;
  code?: unknown;
  details?: Record<string, string>;
}

function parseAnswer(text: string): Answer | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null ? answer : undefined;
  } catch {
    return undefined;
  }
}

function failureOf(response: Response, answer: Answer | undefined): BursarError {
  const ours = typeof answer?.code === "string" && typeof answer.error === "string";
  const details = (ours ? answer.details : undefined) ?? {};
  const fields = Object.entries(details).map(([field, problem]) => ` ${field}: ${problem.replace(/\.$/, "")}.`);
  const message = ours ? String(answer.error) + fields.join("") : `The answer is ${response.status} ${response.statusText}, and not Bursar's.`;
  const after = response.headers.get("retry-after");
  return new BursarError(
    message,
    response.status,
    ours ? String(answer.code) : "",
    details,
    response.headers.get("x-request-id") ?? undefined,
    after !== null && /^\d{1,9}$/.test(after) ? Number(after) : undefined,
  );
}

/** Waits, or fails as soon as the signal ends it. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
