import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handler } from "../../http/handler.ts";

/** Version of the interface that is served, in the form that clients compare. */
const VERSION = "v0.19.0";
const SSH_PORT = 22;

export const getInfo: Handler<PublicOperations["getInfo"]> = async ({ services, request }) => {
  const { db, settings } = services;
  const address = request.origin;
  const port = address.port || (address.protocol === "https:" ? "443" : "80");
  const users = await db.user.findFirst({ select: { id: true } });
  return {
    version: VERSION,
    endpoints: {
      ssh: settings.sshEndpoint ?? `${address.hostname}:${SSH_PORT}`,
      api: settings.apiEndpoint ?? `${address.hostname}:${port}`,
    },
    setup: users !== null,
    authentication: { local: true, saml: settings.saml !== undefined },
  };
};

export const healthcheck: Handler<PublicOperations["healthcheck"]> = async () => undefined;
