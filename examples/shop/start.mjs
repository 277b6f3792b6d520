// Starts Bursar with data that is thrown away, and a shop beside it. Ctrl+C ends both.
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Bursar } from "bursar";

import { newShop, openSellers } from "./shop.mjs";

const run = promisify(execFile);
const repository = fileURLToPath(new URL("../..", import.meta.url));
const data = await mkdtemp(path.join(tmpdir(), "bursar-shop-"));

// BURSAR may name a program that is built already.
let program = process.env.BURSAR;
if (!program) {
  console.log("Building Bursar. The first time takes a minute or two.");
  program = path.join(data, process.platform === "win32" ? "bursar.exe" : "bursar");
  try {
    await run("go", ["build", "-o", program, "./cmd/bursar"], { cwd: repository });
  } catch (problem) {
    await rm(data, { recursive: true, force: true });
    throw problem;
  }
}

const address = `127.0.0.1:${await freePort()}`;
// What else is set for Bursar on this machine has no part in it: it may be a real database, or a gateway that moves money.
const others = Object.entries(process.env).filter(([name]) => !name.startsWith("BURSAR_"));
const settings = {
  ...Object.fromEntries(others),
  BURSAR_DATA_DIR: data,
  BURSAR_ADDR: address,
  BURSAR_SANDBOX_ADDR: "127.0.0.1:0",
  BURSAR_METRICS_ADDR: "off",
  // So that there is something to see within a minute.
  BURSAR_EARNINGS_HOLD: process.env.BURSAR_EARNINGS_HOLD ?? "20s",
  BURSAR_ACCOUNT_COOLDOWN: "0s",
  BURSAR_CANCEL_WINDOW: "10s",
};
const service = spawn(program, ["serve"], { env: settings, stdio: ["ignore", "ignore", "pipe"] });
let said = "";
service.stderr.on("data", (text) => (said = (said + text).slice(-10_000)));
service.on("exit", (code) => {
  if (!ending) {
    console.error(`Bursar ended with ${code}. It said at last:\n${said}`);
    end(1);
  }
});
let ending = false;
process.on("SIGINT", () => end(0));
process.on("SIGTERM", () => end(0));

async function end(code) {
  if (ending) return;
  ending = true;
  if (service.exitCode === null) {
    const ended = new Promise((resolve) => service.once("exit", resolve));
    service.kill();
    await ended;
  }
  await rm(data, { recursive: true, force: true });
  process.exit(code);
}

try {
  const bursar = new Bursar({ baseUrl: `http://${address}`, key: await makeKey() });
  await openSellers(bursar);
  const shop = newShop(bursar);
  const url = await listen(shop);
  const endpoint = await bursar.addEndpoint({ url: `${url}/bursar`, description: "the shop" });
  shop.set("webhook secret", endpoint.secret);
  console.log(`The shop is at ${url}, and Bursar at http://${address}. Ctrl+C ends both and throws their data away.`);
} catch (problem) {
  console.error(problem);
  await end(1);
}

/** Waits until Bursar takes requests, and makes a key with what the shop needs. */
async function makeKey() {
  for (let i = 0; ; i++) {
    try {
      if ((await fetch(`http://${address}/readyz`)).ok) break;
    } catch {
      // it is starting
    }
    if (i === 600) throw new Error(`Bursar did not start. It said at last:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const scopes = ["sellers:read", "sellers:write", "sales:write", "balances:read", "payouts:read", "webhooks:write"];
  const { stdout } = await run(program, ["apikey", "create", "--name", "shop", ...scopes.flatMap((s) => ["--scope", s])], { env: settings });
  return stdout.trim();
}

function listen(shop) {
  return new Promise((resolve, reject) => {
    const server = shop.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", (problem) => {
      if (problem) reject(new Error(`The shop can't listen: ${problem.message}. PORT chooses another port.`));
      else resolve(`http://127.0.0.1:${server.address().port}`);
    });
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
