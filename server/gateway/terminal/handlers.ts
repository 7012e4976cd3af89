import { randomUUID, verify } from "node:crypto";
import type { liveConnections, PublicOperations } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { findRow } from "../../db/sql/rows.ts";
import { InvalidError, UnauthenticatedError } from "../../errors.ts";
import { publicKeyRows } from "../../features/publicKeys/publicKeys.ts";
import { authenticate, readCredential } from "../../http/access/authenticate.ts";
import { isMember } from "../../http/access/membership.ts";
import type { Handler } from "../../http/handler.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import type { Gateway } from "../Gateway.ts";
import { keyOfStored, nextEnd } from "../logins/admit.ts";
import type { Admission, Refusal } from "../protocol.ts";
import { ssh2 } from "../ssh/ssh2.ts";
import { WebTerminalSocket } from "./WebTerminalSocket.ts";

/**
 * Lifetime of a terminal ticket, in milliseconds. A terminal ticket is a one-time credential with which a browser opens
 * a terminal.
 */
const LIFE = 30_000;

const sealPurpose = (digest: string): string => `web terminal ${digest}`;

type TicketRequest = z.output<NonNullable<(typeof liveConnections.openWebTerminal)["body"]>>;

/** The content of a terminal ticket. */
const terminalTicket = z.object({
  device: z.string(),
  username: z.string(),
  password: z.string().optional(),
  fingerprint: z.string().optional(),
  signature: z.string().optional(),
  userId: z.string().optional(),
});

/**
 * Creates a terminal ticket. The ticket's content is stored encrypted in the database, because another instance may
 * open the terminal.
 */
export const openWebTerminal: Handler<PublicOperations["openWebTerminal"]> = async (context) => {
  const { services, body, request } = context;
  checkCredential(body);
  const userId = await userOf(services, request);
  const token = randomUUID();
  const digest = digestOf(token);
  const now = services.now();
  await services.db.terminalTicket.deleteMany({ where: { expiresAt: { lte: now } } });
  await services.db.terminalTicket.create({
    data: {
      digest,
      sealed: services.sealer.seal(JSON.stringify({ ...body, userId }), sealPurpose(digest)),
      expiresAt: new Date(now.getTime() + LIFE),
    },
    select: { digest: true },
  });
  return { token };
};

/**
 * Returns the user of the token in the request. The operation needs no token, because the password or the key
 * authorizes the login. A request with an invalid token is therefore treated like a request without a token.
 */
async function userOf(services: Services, { authorization }: RequestFacts): Promise<string | undefined> {
  if (authorization === undefined) return undefined;
  try {
    const caller = await authenticate(services, await readCredential(services, { authorization }));
    return caller.kind === "user" ? caller.userId : undefined;
  } catch (error) {
    if (error instanceof UnauthenticatedError) return undefined;
    throw error;
  }
}

/**
 * Checks that a request has a credential.
 * @throws InvalidError the request has neither a password nor a key with its signature
 */
function checkCredential({ password, fingerprint, signature }: TicketRequest): void {
  if (password || (fingerprint && signature)) return;
  throw new InvalidError("password is required unless fingerprint and signature are given");
}

/**
 * Opens a web terminal. Errors appear in the terminal itself, because browsers do not show the response when a
 * WebSocket is refused.
 */
export const streamWebTerminal =
  (gateway: Gateway): Handler<PublicOperations["streamWebTerminal"]> =>
  async (context) => {
    const { services, query, request } = context;
    const size = { width: cells(query.cols, 80), height: cells(query.rows, 24) };
    const { address } = request;
    if (gateway.isDraining) return WebTerminalSocket.refused("the service is being stopped");
    const ticket = await takeTicket(services, query.token ?? "");
    if (ticket === undefined)
      return WebTerminalSocket.refused(
        "the terminal ticket is invalid or has expired. Open the terminal again",
      );
    const { username, password } = ticket;
    const { admission: admitted, key } = await admitTerminal(gateway, ticket, address);
    const { admission, userId } = await ofMember(services, admitted, ticket.userId);
    return new WebTerminalSocket(gateway, { admission, username, password, address, key, userId, size });
  };

/**
 * Adds the user to an allowed login if the user is a member of the device's namespace. The session of a member ends
 * when the membership ends.
 */
async function ofMember(
  services: Services,
  admission: Admission,
  userId: string | undefined,
): Promise<{ readonly admission: Admission; readonly userId: string | undefined }> {
  if (userId === undefined || "refused" in admission) return { admission, userId: undefined };
  const { device } = admission;
  const member = await findRow(services.db, "Member", { tenantId: device.tenantId, userId });
  const at = services.accessTime();
  if (member === null || !isMember(member, at)) return { admission, userId: undefined };
  const access = Math.min(device.ends.access, nextEnd([member.accessExpiresAt], at));
  return { admission: { device: { ...device, ends: { ...device.ends, access } } }, userId };
}

/**
 * Deletes a ticket and returns its content. Returns undefined if the ticket does not exist. Each ticket can be used
 * once.
 */
async function takeTicket(
  services: Services,
  token: string,
): Promise<z.output<typeof terminalTicket> | undefined> {
  const digest = digestOf(token);
  const row = await services.db.terminalTicket.findUnique({ where: { digest } });
  if (row === null || row.expiresAt <= services.now()) return undefined;
  const { count } = await services.db.terminalTicket.deleteMany({ where: { digest } });
  if (count === 0) return undefined;
  return terminalTicket.parse(JSON.parse(services.sealer.open(row.sealed, sealPurpose(digest))));
}

/**
 * Allows or denies a login from a web terminal, by the same rules as an SSH login. The browser's signature replaces the
 * signature of the SSH protocol.
 */
async function admitTerminal(
  gateway: Gateway,
  ticket: z.output<typeof terminalTicket>,
  address: string,
): Promise<{ readonly admission: Admission; readonly key: Buffer | undefined }> {
  const { services } = gateway;
  const { device: uid, username: login, fingerprint, signature } = ticket;
  const question = { login, device: { uid }, address, firewall: true } as const;
  if (!fingerprint || !signature) {
    return { admission: await gateway.admit({ ...question, key: undefined }), key: undefined };
  }
  const device = await services.db.device.findUnique({ where: { uid }, select: { tenantId: true } });
  const row = device && (await publicKeyRows.find(services.db, { tenantId: device.tenantId, fingerprint }));
  const refused = (reason: Refusal, text: string) => ({
    admission: { refused: reason, reason: text },
    key: undefined,
  });
  if (!row) return refused("key", "the namespace has no such key");
  const key = keyOfStored(row.data);
  if (!hasSigned(key, login, signature)) return refused("signature", "the signature is wrong");
  return { admission: await gateway.admit({ ...question, key }), key };
}

/**
 * Returns true if the signature of a login name is valid. The console signs with SHA-1 if the key is an RSA key. It
 * signs without a separate digest if the key is an Ed25519 key.
 */
function hasSigned(key: Buffer, login: string, signature: string): boolean {
  const parsed = ssh2.utils.parseKey(key);
  if (parsed instanceof Error) return false;
  const algorithm = parsed.type === "ssh-rsa" ? "sha1" : null;
  try {
    return verify(algorithm, Buffer.from(login), parsed.getPublicPEM(), Buffer.from(signature, "base64"));
  } catch {
    return false;
  }
}

function cells(text: string | undefined, usual: number): number {
  const count = Number(text);
  return Number.isInteger(count) && count > 0 && count <= 1000 ? count : usual;
}
