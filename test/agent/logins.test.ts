import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { hashPassword } from "../../agent/password.ts";
import { newEd25519Pair } from "../../server/secrets/hostKey.ts";
import { DEVICE, type FakeGateway, newRsaKey } from "./FakeGateway.ts";
import { type Pair, ranCommand, startPair } from "./support.ts";

const PASSWORD = "a password for tests";
const [known, unknown] = [newRsaKey(), newRsaKey()];

let pair: Pair;
let gateway: FakeGateway;
beforeAll(async () => {
  const hash = await hashPassword(PASSWORD);
  pair = await startPair({ flags: ["--logins", "deploy,ops"], env: { GATEHOUSE_AGENT_PASSWORD_HASH: hash } });
  gateway = pair.gateway;
  gateway.hold(known);
});
afterAll(async () => {
  await pair.stop();
  expect(pair.agent.output()).not.toContain(PASSWORD);
});

const REFUSED = "All configured authentication methods failed";

it("accepts a key that the service signs with", async () => {
  const client = await gateway.login({ username: "deploy", privateKey: known });
  expect((await ranCommand(client, "echo $USER")).code).toBe(0);
  expect(JSON.parse(gateway.signed.at(-1) ?? "")).toEqual({ Username: "deploy", Namespace: DEVICE });
  client.end();
  await vi.waitFor(() =>
    expect(pair.agent.output()).toContain('"login":"deploy","method":"publickey","msg":"login"'),
  );
});

it("rejects a signature by another key", async () => {
  const { length: signed } = gateway.signed;
  gateway.hold(known, unknown);
  await expect(gateway.login({ username: "deploy", privateKey: known })).rejects.toThrow(REFUSED);
  expect(gateway.signed).toHaveLength(signed + 1);
  gateway.hold(known);
});

it.each([
  ["a key that the service does not have", { username: "deploy", privateKey: unknown }],
  ["a key that is not RSA", { username: "deploy", privateKey: newEd25519Pair().private }],
  ["a login name that is not served", { username: "root", privateKey: known }],
  ["a password for a login name that is not served", { username: "root", password: PASSWORD }],
  ["a wrong password", { username: "ops", password: `${PASSWORD}!` }],
  ["an empty password", { username: "ops", password: "" }],
])("refuses %s", async (_what, config) => {
  const { length: signed } = gateway.signed;
  await expect(gateway.login(config)).rejects.toThrow(REFUSED);
  expect(gateway.signed).toHaveLength(signed);
});

it("accepts a password that matches the hash", async () => {
  const client = await gateway.login({ username: "ops", password: PASSWORD });
  client.end();
});

it("hangs up after six wrong credentials", async () => {
  let tries = 0;
  const attempt = gateway.login({
    username: "ops",
    authHandler: (_left, _partial, next) => {
      tries += 1;
      next({ type: "publickey", username: "ops", key: unknown });
    },
  });
  await expect(attempt).rejects.toThrow();
  expect(tries).toBe(6);
});

it.each([
  ["host keys", { serverHostKey: ["ssh-rsa"] }],
  ["key exchange", { kex: ["diffie-hellman-group14-sha1"] }],
  ["ciphers", { cipher: ["aes128-cbc"] }],
] as const)("offers no weak %s", async (_what, algorithms) => {
  const login = gateway.login({ username: "ops", password: PASSWORD, algorithms: algorithms as never });
  await expect(login).rejects.toThrow();
});
