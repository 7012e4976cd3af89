import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Context, Handler } from "../../http/routes.ts";

/** Version of the interface that is served, in the form that clients compare. */
const VERSION = "v0.19.0";
const SSH_PORT = 22;

/** Host and port that the caller reaches the service at; a proxy's word counts when it is a known one. */
function addressOf({ services, request }: Context<PublicOperations["getInfo"]>): URL {
  const proxied = services.settings.trustedProxies.includes(request.peer);
  const proto = proxied && request.forwarded.proto === "https" ? "https" : "http";
  const host = (proxied && request.forwarded.host) || request.host;
  return URL.canParse(`${proto}://${host}`) ? new URL(`${proto}://${host}`) : new URL("http://localhost");
}

export const getInfo: Handler<PublicOperations["getInfo"]> = async (context) => {
  const { db, settings } = context.services;
  const address = addressOf(context);
  const port = address.port || (address.protocol === "https:" ? "443" : "80");
  const users = await db.user.findFirst({ select: { id: true } });
  return {
    version: VERSION,
    endpoints: {
      ssh: settings.sshEndpoint ?? `${address.hostname}:${SSH_PORT}`,
      api: settings.apiEndpoint ?? `${address.hostname}:${port}`,
    },
    setup: users !== null,
    authentication: { local: true, saml: false },
  };
};

export const healthcheck: Handler<PublicOperations["healthcheck"]> = async () => undefined;
