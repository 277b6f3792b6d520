export { Bursar, type BursarOptions, type EventOptions, type EventsPage, externalId, type Page, type PayoutOptions } from "./client.js";
export { SellerClient } from "./seller.js";
export { apiVersion, BursarError, type CallOptions, type Options } from "./http.js";
export { majorUnits, minorUnits } from "./amounts.js";
export { type HeadersOf, verifyWebhook, WebhookError } from "./webhooks.js";
export type * from "./types.js";
