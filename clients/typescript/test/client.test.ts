// Runs against a service that the caller has started: BURSAR_URL is its address, BURSAR_KEY a service key of it with all scopes, and
// LOSSY_URL a way to it that loses the first answer to each payout request.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { Bursar, BursarError, type DeliveredEvent, externalId, majorUnits, minorUnits, type Ping, verifyWebhook, WebhookError } from "bursar";

const baseUrl = variable("BURSAR_URL");
const key = variable("BURSAR_KEY");
const bursar = new Bursar({ baseUrl, key });

function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

const closing: (() => void)[] = [];
after(() => closing.forEach((close) => close()));

/** Listens on this machine until the tests are over. */
async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function until(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await is()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`waited in vain until ${what}`);
}

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of all) list.push(one);
  return list;
}

/** Makes a seller who can withdraw 1499.50. */
async function openSeller(name: string): Promise<string> {
  const id = externalId(name);
  await bursar.createSeller({ externalId: name, name: "Asha Rao", email: `${name}@shop.example` });
  await bursar.registerBankAccount(id, { accountHolder: "Asha Rao", accountNumber: "50100123456789", ifsc: "HDFC0000053" });
  await bursar.recordSale({ saleId: `${name}-1`, sellerId: id, amount: 1499.5, occurredAt: "2026-01-01T10:00:00Z", availableAt: "2026-01-02T10:00:00Z" });
  await until("the money can be withdrawn", async () => (await bursar.explain(id)).blockers.length === 0);
  return id;
}

test("a payout is made once, though its first answer is lost", async () => {
  const id = await openSeller("lost");
  const lossy = new Bursar({ baseUrl: variable("LOSSY_URL"), key });
  const payout = await lossy.requestPayout(id, { amount: 600.25, notes: "weekly" });
  assert.equal(payout.amount, 600.25);
  assert.equal(payout.source, "marketplace");
  const page = await bursar.payouts(id);
  assert.deepEqual(page.payouts.map((p) => p.id), [payout.payoutId]);
  assert.equal((await bursar.balance(id)).availableBalance, 899.25);
});

test("sellers and sales are safe to repeat", async () => {
  const seller = { externalId: "shop/17 ü", name: "Meera Iyer", email: "meera@shop.example" };
  await assert.rejects(bursar.createSeller(seller), (e) => e instanceof BursarError && e.code === "validation_failed" && /externalId: /.test(e.message));
  seller.externalId = "shop/17";
  const made = await bursar.createSeller(seller);
  assert.deepEqual(await bursar.createSeller(seller), made);
  assert.deepEqual(await bursar.getSeller(externalId("shop/17")), made);
  await bursar.setProductsListed(made.sellerId, 3);
  await assert.rejects(bursar.createSeller({ ...seller, name: "Somebody" }), { code: "seller_conflict", status: 409 });
  await assert.rejects(bursar.getSeller(externalId("nobody")), { code: "seller_not_found" });
  await assert.rejects(bursar.getSeller(""), TypeError);

  const sale = { saleId: "o-1", sellerId: externalId("shop/17"), amount: 10.5, occurredAt: "2026-01-01T10:00:00Z" };
  assert.equal((await bursar.recordSale(sale)).sellerId, made.sellerId);
  const many = Array.from({ length: 501 }, (_, i) => ({ ...sale, saleId: `o-${i + 1}` }));
  const results = await bursar.recordSales([...many, { ...sale, saleId: "o-x", sellerId: externalId("nobody") }]);
  assert.equal(results.length, 502);
  assert.deepEqual(results.map((r) => r.success), [...many.map(() => true), false]);
  assert.equal(results[501]?.code, "seller_not_found");
  assert.equal((await bursar.refundSale("o-2", { refundId: "r-1" })).amount, 10.5);
  const adjustment = { adjustmentId: "a-1", amount: -10.5, reason: "A fee.", note: "Ticket 1." };
  for (let i = 0; i < 2; i++) assert.equal((await bursar.adjustBalance(externalId("shop/17"), adjustment)).amount, -10.5);
  const page = await bursar.sales(made.sellerId, { page: 2, limit: 50 });
  assert.equal(page.pagination.totalItems, 501);
  assert.equal(page.sales.length, 50);
  assert.match((await bursar.sessionLink(made.sellerId)).url, /\/api\/auth\/link\?token=/);
});

test("errors say what is wrong with which field", async () => {
  await assert.rejects(bursar.createSeller({ externalId: "x", name: "A", email: "none" }), (e) => {
    assert.ok(e instanceof BursarError);
    assert.equal(e.status, 422);
    assert.equal(e.code, "validation_failed");
    assert.deepEqual(Object.keys(e.details).sort(), ["email", "name"]);
    assert.match(e.message, /email: .*name: /);
    assert.ok(e.requestId);
    return true;
  });
  await assert.rejects(new Bursar({ baseUrl, key: "nonsense" }).getSeller("usr_1"), { status: 401 });
});

test("what is repeated, and what is not", async () => {
  const refuse = (status: number, header: Record<string, string> = {}) => (response: ServerResponse) => {
    response.writeHead(status, header).end('{"success":false,"error":"No.","code":"refused"}');
  };
  const cut = (response: ServerResponse) => response.destroy();
  const payout = (client: Bursar) => client.requestPayout("usr_1", { amount: 600 });
  const endpoint = (client: Bursar) => client.addEndpoint({ url: "https://shop.example" });
  const cases: [string, (client: Bursar) => Promise<unknown>, (response: ServerResponse) => void, number][] = [
    ["a payout after 503", payout, refuse(503), 3],
    ["a payout after a lost answer", payout, cut, 3],
    ["a payout after 429", payout, refuse(429, { "retry-after": "0" }), 3],
    ["a payout after 429 with a long wait", payout, refuse(429, { "retry-after": "3600" }), 1],
    ["a payout after 400", payout, refuse(400), 1],
    ["a payout after a redirect", payout, refuse(307, { location: "/elsewhere" }), 1],
    ["an endpoint after 429", endpoint, refuse(429), 3],
    ["an endpoint after 503", endpoint, refuse(503), 1], // it may be there
    ["an endpoint after a lost answer", endpoint, cut, 1],
  ];
  for (const [name, call, answer, want] of cases) {
    const keys: unknown[] = [];
    const url = await listen((request, response) => {
      keys.push(request.headers["idempotency-key"]);
      answer(response);
    });
    await assert.rejects(call(new Bursar({ baseUrl: url, key: "k", attempts: 3, maxWait: 5 })), name);
    assert.equal(keys.length, want, name);
    assert.equal(new Set(keys).size, 1, name);
  }
});

test("a wait ends with its signal, and an attempt with its time", async () => {
  const busy = await listen((_, response) => response.writeHead(503, { "retry-after": "20" }).end());
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 200);
  await assert.rejects(new Bursar({ baseUrl: busy, key: "k" }).getSeller("usr_1", { signal: abort.signal }), { name: "AbortError" });
  const silent = await listen(() => {});
  await assert.rejects(new Bursar({ baseUrl: silent, key: "k", attempts: 1, timeout: 200 }).getSeller("usr_1"), { name: "TimeoutError" });
});

test("the feed is read over pages, and followed", async () => {
  for (let i = 0; i < 110; i++) {
    await bursar.createSeller({ externalId: `n-${i}`, name: "Ravi Shah", email: `ravi-${i}@shop.example` });
  }
  await until("the feed has them", async () => {
    let registered = 0;
    let number = 0;
    for await (const event of bursar.events()) {
      assert.equal(event.number, ++number);
      if (event.type === "seller.registered" && !event.data.tampered && event.data.externalId?.startsWith("n-")) registered++;
    }
    return registered === 110;
  });
  const id = externalId("n-0");
  const last = (await collect(bursar.events({ types: ["seller.registered"] }))).at(-1);
  assert.ok(last);
  const follow = bursar.follow({ after: last.number, types: ["sale.recorded"] });
  const next = follow.next();
  await bursar.recordSale({ saleId: "followed", sellerId: id, amount: 5 });
  const { value } = await next;
  assert.ok(value && value.type === "sale.recorded" && !value.data.tampered);
  assert.equal(value.data.saleId, "followed");
  assert.equal(value.data.balance.pending, 5);
  await follow.return(undefined);
  const sellers = new Set<string>();
  for await (const seller of bursar.sellers()) sellers.add(seller.sellerId);
  assert.ok(sellers.size >= 110);
});

test("deliveries are verified", async () => {
  const deliveries: { headers: IncomingMessage["headers"]; body: Buffer }[] = [];
  const url = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      deliveries.push({ headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(204).end();
    });
  });
  const endpoint = await bursar.addEndpoint({ url, types: ["seller.registered"], description: "test" });
  assert.equal((await bursar.testEndpoint(endpoint.id)).delivered, true);
  const ping = deliveries.shift();
  assert.ok(ping);
  assert.equal(verifyWebhook(ping.body, ping.headers, endpoint.secret).type, "ping");

  const rotated = await bursar.rotateSecret(endpoint.id);
  const seller = await bursar.createSeller({ externalId: "hook", name: "Ravi Shah", email: "hook@shop.example" });
  await until("it is delivered", () => deliveries.length > 0);
  const { body, headers } = deliveries[0]!;
  const check = (event: DeliveredEvent | Ping) => {
    assert.ok(event.type === "seller.registered" && !event.data.tampered);
    assert.equal(event.data.sellerId, seller.sellerId);
    assert.equal(event.id, headers["webhook-id"]);
  };
  check(verifyWebhook(body, headers, endpoint.secret));
  check(verifyWebhook(body.toString(), new Headers(headers as Record<string, string>), rotated.secret));
  check(verifyWebhook(body, headers, ["whsec_AAAA", rotated.secret]));
  const sent = Number(headers["webhook-timestamp"]) * 1000;
  for (const [what, refused] of Object.entries({
    "another secret": () => verifyWebhook(body, headers, "whsec_AAAA"),
    "another body": () => verifyWebhook(body.toString().replace("hook", "look"), headers, endpoint.secret),
    "another id": () => verifyWebhook(body, { ...headers, "webhook-id": "evt_1" }, endpoint.secret),
    "no signature": () => verifyWebhook(body, { ...headers, "webhook-signature": "" }, endpoint.secret),
    "no headers": () => verifyWebhook(body, {}, endpoint.secret),
    "too old": () => verifyWebhook(body, headers, endpoint.secret, new Date(sent + 301_000)),
    "from the future": () => verifyWebhook(body, headers, endpoint.secret, new Date(sent - 301_000)),
  })) {
    assert.throws(refused, WebhookError, what);
  }
  assert.throws(() => verifyWebhook(body, headers, "secret"), TypeError);
  assert.throws(() => verifyWebhook(body, headers, []), TypeError);

  await until("it is recorded", async () => (await collect(bursar.deliveries({ endpoint: endpoint.id, status: "delivered" }))).length === 1);
  assert.equal(await bursar.redeliver(String(headers["webhook-id"]), { endpointId: endpoint.id }), 1);
  await until("it is delivered again", () => deliveries.length > 1);
  assert.equal(deliveries[1]?.headers["webhook-id"], headers["webhook-id"]);
  assert.equal((await bursar.changeEndpoint(endpoint.id, { status: "disabled" })).status, "disabled");
  assert.equal((await bursar.endpoint(endpoint.id)).url, url);
  assert.ok((await bursar.endpoints()).some((e) => e.id === endpoint.id));
  await bursar.removeEndpoint(endpoint.id);
  await assert.rejects(bursar.endpoint(endpoint.id), { code: "endpoint_not_found" });
});

test("sellers sign in themselves", async () => {
  const open = new Bursar({ baseUrl });
  await open.register({ name: "Kiran Das", email: "kiran@shop.example", password: "correct horse battery", role: "seller" });
  const { token } = await open.login({ email: "kiran@shop.example", password: "correct horse battery" });
  const kiran = open.seller(token);
  assert.equal((await kiran.me()).user.name, "Kiran Das");
  assert.equal((await kiran.balance()).availableBalance, 0);
  assert.equal((await kiran.registerBankAccount({ accountHolder: "Kiran Das", accountNumber: "50100123456780", ifsc: "HDFC0000053" })).accountNumber, "****6780");
  assert.equal((await kiran.bankAccount()).ifsc, "HDFC0000053");
  assert.ok((await kiran.explain()).blockers.length > 0);
  await assert.rejects(kiran.requestPayout({ amount: 600 }), BursarError);
  assert.deepEqual((await kiran.payouts()).payouts, []);
  await kiran.logout();
  await assert.rejects(kiran.me(), { status: 401 });
});

test("amounts are counted without rounding", () => {
  for (const [amount, units] of [[1499.5, 149950], [0.1, 10], [1.1, 110], [4.35, 435], [-0.05, -5], [0, 0], [22517998136852.47, 2 ** 51 - 1]] as const) {
    assert.equal(minorUnits(amount), units);
    assert.equal(majorUnits(units), amount);
  }
  assert.equal(minorUnits(600, 0), 600);
  assert.equal(minorUnits(1.234, 3), 1234);
  for (const wrong of [1.005, Number.NaN, Infinity, 1e40, 0.001, 90071992547409.91]) assert.throws(() => minorUnits(wrong), RangeError, String(wrong));
  assert.throws(() => majorUnits(1.5), RangeError);
});

test("settings that can't be right are refused", () => {
  for (const options of [{ baseUrl: "pay.example" }, { baseUrl: "ftp://pay.example" }, { baseUrl: "https://u:p@pay.example" }, { baseUrl, key: "a b" }, { baseUrl, attempts: 0 }]) {
    assert.throws(() => new Bursar(options));
  }
});
