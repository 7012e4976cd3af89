import { onTestFinished } from "vitest";
import { type ClientOptions, type Credential, createClient, passwordCredential } from "../../sdk/index.ts";
import { fakeTiming, fakeToken, OTHER, scriptedServer, TENANT } from "./scriptedServer.ts";

/** A credential for which a login needs one request, since the user has no MFA. */
export const user = passwordCredential({ username: "ann", password: "hunter2" });

/** Starts a scripted server, and clients that share one simulated clock. */
export async function startSession(credential?: Credential, options: Partial<ClientOptions> = {}) {
  const server = await scriptedServer();
  const clock = fakeTiming();
  const connect = (more: Partial<ClientOptions> = {}) => {
    const client = createClient({
      serverVersion: "0.19",
      url: server.url,
      timing: clock.timing,
      ...(credential && { credential }),
      ...options,
      ...more,
    });
    onTestFinished(() => client.close());
    return client;
  };
  const paths = () => server.requests.map((request) => `${request.method} ${request.path}`);
  return { server, clock, connect, client: connect(), paths };
}

export const LOGIN = "POST /api/login";
export const TAGS = "GET /api/tags";
export const bearer = (token: string) => `Bearer ${token}`;

/** A token for each namespace, without an expiry. */
export const tokens: Record<string, string | undefined> = {
  [TENANT]: fakeToken({ tenant: TENANT }),
  [OTHER]: fakeToken({ tenant: OTHER }),
};
