import { randomUUID } from "node:crypto";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { outageOf } from "../db/outage.ts";
import type { Snapshots } from "../db/sqlite/snapshots.ts";
import { answerTo } from "../errors.ts";
import { presentAuditEntry, type WireEntry } from "../features/audit/audit.ts";
import { createUser } from "../features/users/account/createUser.ts";
import type { ExternalParts } from "../files/backupFile.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { schemaController } from "../http/listener/schemaController.ts";
import { OperatorError } from "../OperatorError.ts";
import type { HostKey } from "../secrets/hostKey.ts";
import { setupSign } from "../secrets/setupSign.ts";
import type { DatabaseSigningKeys } from "../secrets/signingKeys.ts";
import type { Services } from "../services.ts";
import { registerAnnouncements } from "./announcementRoutes.ts";
import { confirmAddress, disableMfa, resetPassword, signOut } from "./changeUser.ts";
import { registerInvoices } from "./invoiceRoutes.ts";
import { parseRequest } from "./parseRequest.ts";
import { recordOperator } from "./recordOperator.ts";
import {
  auditQuery,
  confirmAddressRequest,
  createUserRequest,
  type ListedUser,
  resetPasswordRequest,
  rotateSigningKeyRequest,
  type SetupLink,
  userRequest,
} from "./requests.ts";
import { registerSnapshots } from "./snapshotRoutes.ts";

interface AdminOptions {
  readonly logger: FastifyBaseLogger;
  /** Returns the service's URL for a browser on this machine, without a final slash. */
  readonly address: () => string;
  readonly keys: DatabaseSigningKeys;
  readonly snapshots: Snapshots | undefined;
  readonly external: ExternalParts;
  /** Returns the SSH host key of the service; undefined if it has none. */
  readonly hostKey: () => HostKey | undefined;
}

/**
 * Builds the server for the commands of `gatehouse-server admin`. Only the user that runs the service can open the
 * socket. This file permission replaces a login.
 */
export function buildAdminServer(services: Services, options: AdminOptions): FastifyInstance {
  const { logger, address, keys } = options;
  const servers = new HttpServers();
  const app: FastifyInstance = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    serverFactory: servers.make,
    schemaController,
  });
  servers.closeWith(app);
  // The timeout is off, because the service copies the whole database before it sends the first byte of the response.
  // The copy of a large database takes a long time.
  app.server.setTimeout(0);

  app.setErrorHandler((error, request, reply) => {
    const answer = answerTo(error);
    if (answer === undefined || outageOf(error)) {
      request.log.error({ err: error }, "administration request failed");
    }
    // The caller operates the service, so the response may contain the error's message.
    if (error instanceof OperatorError) return reply.code(500).send({ message: error.message });
    if (answer === undefined) {
      return reply.code(500).send({ message: "internal error; see the service's log" });
    }
    const { status, body } = answer;
    const message =
      "message" in body ? body.message : `${status === 409 ? "taken" : "invalid"}: ${body.join(", ")}`;
    return reply.code(status).send({ message });
  });

  app.post("/users", async (request, reply) => {
    const user = parseRequest(createUserRequest, request.body);
    const { id } = await createUser(services, user);
    await recordOperator(services, request, {
      operation: "user create",
      object: { kind: "user", id },
      after: {
        username: user.username.toLowerCase(),
        email: user.email.toLowerCase(),
        name: user.name,
      },
    });
    request.log.info({ userId: id }, "user created by an administrator");
    return reply.code(201).send({ id });
  });

  app.get("/users", async (): Promise<ListedUser[]> => {
    const users = await services.db.user.findMany({
      select: {
        id: true,
        username: true,
        email: true,
        name: true,
        status: true,
        maxNamespaces: true,
        createdAt: true,
      },
      orderBy: { username: "asc" },
    });
    return users.map((user) => ({ ...user, createdAt: user.createdAt.toISOString() }));
  });

  app.post("/password", async (request, reply) => {
    const { user, password } = parseRequest(resetPasswordRequest, request.body);
    const id = await resetPassword(services, { request, user }, password);
    request.log.info({ userId: id }, "password reset by an administrator");
    return reply.code(200).send({ id });
  });

  app.post("/disable-mfa", async (request, reply) => {
    const { user } = parseRequest(userRequest, request.body);
    const id = await disableMfa(services, { request, user });
    request.log.info({ userId: id }, "MFA disabled by an administrator");
    return reply.code(200).send({ id });
  });

  app.post("/sign-out", async (request, reply) => {
    const { user } = parseRequest(userRequest, request.body);
    const id = await signOut(services, { request, user });
    request.log.info({ userId: id }, "logins ended by an administrator");
    return reply.code(200).send({ id });
  });

  app.post("/confirm-address", async (request, reply) => {
    const { user, address } = parseRequest(confirmAddressRequest, request.body);
    const confirmed = await confirmAddress(services, { request, user }, address);
    request.log.info({ userId: confirmed.id }, "address confirmed by an administrator");
    return reply.code(200).send(confirmed);
  });

  app.post("/signing-key", async (request, reply) => {
    const { revoke } = parseRequest(rotateSigningKeyRequest, request.body);
    const kid = await keys.rotate({ revoke });
    await recordOperator(services, request, {
      operation: "rotate-signing-key",
      object: { kind: "signingKey", id: kid },
      after: { kid, revoke },
    });
    request.log.info({ kid, revoke }, "signing key rotated by an administrator");
    return reply.code(201).send({ kid });
  });

  app.get("/audit", async (request): Promise<WireEntry[]> => {
    const { tenant, limit } = parseRequest(auditQuery, request.query);
    const entries = await services.db.auditEntry.findMany({
      where: { tenantId: tenant ?? null },
      orderBy: { id: "desc" },
      take: limit,
    });
    return entries.map(presentAuditEntry);
  });

  registerAnnouncements(app, services);
  registerSnapshots(app, services, options);
  registerInvoices(app, services);

  app.get("/setup-link", async (): Promise<SetupLink> => {
    const sign = setupSign(services.keys);
    const used = (await services.db.user.count()) > 0;
    return { sign, url: `${address()}/setup?sign=${sign}`, used };
  });

  return app;
}
