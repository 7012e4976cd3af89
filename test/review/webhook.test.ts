import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendToWebhook, webhookAddress } from "../../provider/drift/webhook.ts";
import { proxiesFromEnvironment } from "../../sdk/index.ts";
import { listening } from "../support/listening.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";

describe("a message to a webhook", () => {
  let hook: TestWebhook;
  beforeAll(async () => {
    hook = await startWebhook();
  });
  afterAll(() => hook.stop());

  const send = (url = hook.url, env = {}) =>
    sendToWebhook(new URL(url), { n: 1 }, { proxy: proxiesFromEnvironment(env)(new URL(url)), pause: 1 });
  const sent = async (work: Promise<void>) => {
    const before = hook.messages.length;
    const error = await work.then(
      () => undefined,
      (reason: Error) => reason.message,
    );
    return { error, attempts: hook.messages.length - before };
  };

  it("is sent again while the receiver is busy or fails", async () => {
    hook.answer({ status: 503 }, { status: 429, headers: { "retry-after": "0" } }, { status: 500 });
    expect(await sent(send())).toEqual({ error: undefined, attempts: 4 });
  });

  it("fails after five attempts, and the error contains the host but not the address", async () => {
    hook.answer(...Array.from({ length: 9 }, () => ({ status: 502 })));
    const { host } = new URL(hook.url);
    const error = `Cannot send the drift notification to ${host}: status 502.`;
    expect(await sent(send())).toEqual({ error, attempts: 5 });
    hook.answer();
  });

  it("is not sent again after a rejection, and is not sent to the target of a redirect", async () => {
    hook.answer({ status: 404 });
    expect(await sent(send())).toMatchObject({ error: expect.stringContaining("404"), attempts: 1 });
    hook.answer({ status: 302, headers: { location: hook.url } });
    expect(await sent(send())).toMatchObject({ error: expect.stringContaining("302"), attempts: 1 });
  });

  it("fails if no receiver is running", async () => {
    const stopped = await startWebhook();
    await stopped.stop();
    const { host } = new URL(stopped.url);
    const error = `Cannot send the drift notification to ${host}: ECONNREFUSED.`;
    expect(await sent(send(stopped.url))).toEqual({ error, attempts: 0 });
  });

  it("fails if the receiver does not answer", async () => {
    const silent = await listening(createServer(() => {}));
    const url = new URL(silent.url);
    const work = sendToWebhook(url, {}, { deadline: 50 });
    await expect(work).rejects.toThrow(`Cannot send the drift notification to ${url.host}: TimeoutError`);
    await silent.stop();
  });

  it("counts as delivered if the response has a success status, even if the response body is incomplete", async () => {
    let count = 0;
    const breaking = await listening(
      createServer((_, response) => {
        count += 1;
        response.writeHead(200, { "content-length": "10" }).write("ok");
        response.socket?.end();
      }),
    );
    await send(breaking.url);
    expect(count).toBe(1);
    await breaking.stop();
  });

  it("is sent through a proxy to another machine, and without a proxy to this machine", async () => {
    const proxy = await startWebhook();
    await proxy.stop();
    const env = { http_proxy: new URL("/", proxy.url).href, https_proxy: new URL("/", proxy.url).href };
    expect(await sent(send(hook.url, env))).toEqual({ error: undefined, attempts: 1 });
    const { error } = await sent(send("https://hooks.example.org/services/x", env));
    expect(error).toMatch(
      /^Cannot send the drift notification to hooks\.example\.org: cannot connect to the proxy http:\/\/127\.0\.0\.1:\d+: connection refused \(ECONNREFUSED\)/,
    );
  });
});

describe("the address of a webhook", () => {
  it.each([
    [undefined, "is not set"],
    ["hooks", "is not a URL"],
    ["http://hooks.example.org/very-secret", "must begin with https://"],
    ["ftp://127.0.0.1/very-secret", "must begin with https://"],
    ["https://ana:very-secret@hooks.example.org/", "must not contain a user name or password"],
  ])("rejects %s", (text, why) => {
    const read = () => webhookAddress(text === undefined ? {} : { GATEHOUSE_NOTIFY_URL: text });
    expect(read).toThrow(why);
    expect(read).toThrow(/^GATEHOUSE_NOTIFY_URL:? (?!.*very-secret)/);
  });

  it("is not printed if GATEHOUSE_NOTIFY_URL_FILE contains the address instead of a path", () => {
    const env = { GATEHOUSE_NOTIFY_URL_FILE: "https://hooks.example.org/very-secret" };
    expect(() => webhookAddress(env)).toThrow(
      "GATEHOUSE_NOTIFY_URL_FILE: Cannot read the file (its path looks like a URL): it does not exist. Set it to the path of a file, not to an address.",
    );
  });
});
