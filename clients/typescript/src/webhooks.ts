import { createHmac, timingSafeEqual } from "node:crypto";

import type { DeliveredEvent, Ping } from "./types.js";

/** How far a delivery's time may be from ours, in seconds. */
const tolerance = 300;

/** A delivery that is not from Bursar, or too old, or was changed on the way. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

/** The headers of a request: a Headers, or an object as Node.js has it, with names in lower case. */
export type HeadersOf = Headers | Readonly<Record<string, string | string[] | undefined>>;

/**
 * Verifies a delivery, as Standard Webhooks 1.0 has it, and returns its event. `body` is the body as it came, byte by byte. `secrets` is the
 * endpoint's secret, or several while it is rotated. It throws a WebhookError. Events are delivered at least once and in no promised
 * order: store each under its `id`, and do nothing if it is there.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: HeadersOf,
  secrets: string | readonly string[],
  now: Date = new Date(),
): DeliveredEvent | Ping {
  const keys = (typeof secrets === "string" ? [secrets] : secrets).map(keyOf);
  if (keys.length === 0) {
    throw new TypeError("a secret is needed");
  }
  const id = header(headers, "webhook-id");
  const sent = header(headers, "webhook-timestamp");
  if (id === "" || !/^\d{1,15}$/.test(sent)) {
    throw new WebhookError("webhook-id or webhook-timestamp is missing");
  }
  if (Math.abs(now.getTime() / 1000 - Number(sent)) > tolerance) {
    throw new WebhookError(`it was sent more than ${tolerance / 60} minutes before or after now; check both clocks`);
  }
  const expected = keys.map((key) => createHmac("sha256", key).update(`${id}.${sent}.`).update(body).digest());
  const given = header(headers, "webhook-signature")
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"))
    .map((signature) => Buffer.from(signature.slice("v1,".length), "base64"));
  if (!given.some((signature) => expected.some((mac) => mac.length === signature.length && timingSafeEqual(mac, signature)))) {
    throw new WebhookError("no signature is by the secret; verify the body as it came, and with the endpoint's own secret");
  }
  const event: object = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
  return { ...event, id } as DeliveredEvent | Ping;
}

function keyOf(secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (!secret.startsWith("whsec_") || key.length === 0) {
    throw new TypeError("an endpoint's secret is whsec_ and base64, as it was shown when the endpoint was added");
  }
  return key;
}

function header(headers: HeadersOf, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return (typeof value === "string" ? value : undefined) ?? "";
}
