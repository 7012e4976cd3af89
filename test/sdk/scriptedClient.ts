import { expect, onTestFinished } from "vitest";
import { apiKeyCredential, type Client, type ClientOptions, createClient } from "../../sdk/index.ts";
import { fakeTiming, scriptedServer, TENANT } from "./scriptedServer.ts";

/** The API key that every client of `connect` uses. */
export const KEY = "11111111-2222-4333-8444-555555555555";

/** Creates a client with an API key, and closes it when the test ends. */
export function connect(url: string, options: Partial<ClientOptions> = {}): Client {
  // Without the version, the client would request the version first.
  const client = createClient({ url, credential: apiKeyCredential(KEY), serverVersion: "0.19", ...options });
  onTestFinished(() => client.close());
  return client;
}

/** Starts a scripted server, and a client that uses a simulated clock. */
export async function start(options: Partial<ClientOptions> = {}) {
  const server = await scriptedServer();
  const clock = fakeTiming();
  return { server, clock, client: connect(server.url, { timing: clock.timing, ...options }) };
}

/** Returns the error with which `promise` rejects. Fails if the error is not a `kind`. */
export async function failure<E extends Error>(
  promise: Promise<unknown>,
  kind: abstract new (...args: never[]) => E,
): Promise<E> {
  const error = await promise.then(
    () => new Error("it succeeded"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(kind);
  return error as E;
}

/** A public key in the format of the server. */
export const wireKey = { fingerprint: "aa", tenant_id: TENANT, created_at: "x", filter: { tags: ["prod"] } };
/** A namespace in the format of the server. */
export const wireNamespace = {
  tenant_id: TENANT,
  name: "dev",
  owner: "o",
  type: "team",
  created_at: "x",
  billing: null,
  max_devices: -1,
  devices_accepted_count: 2,
  members: [{}],
  settings: {},
};

/** Creates a public key. The client does not retry this operation. */
export const createKey = (client: Client, options = {}) =>
  client.createPublicKey(
    { body: { data: "AAAA", name: "n", username: "root", filter: { tags: ["prod"] } } },
    options,
  );
