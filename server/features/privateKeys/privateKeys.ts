import { createPublicKey, createPrivateKey as keyOf, sign } from "node:crypto";
import { promisify } from "node:util";
import type { InternalOperations, PublicOperations } from "@gatehouse-access/sdk/contract";
import { PromiseCache } from "@gatehouse-access/sdk/promises";
import { MINUTE } from "@gatehouse-access/sdk/times";
import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { AgentKey, Services } from "../../services.ts";
import { wireDate } from "../fields.ts";
import { newRsaKeyPair, type RsaKeyPair, sshBlobOf } from "./rsaKeyPair.ts";

/** Lifetime of a key pair for one login, in milliseconds (rules section 7). */
const LIFE = MINUTE;
/** Size of a key pair for one login, in bits. Clients expect this size. */
const BITS = 4096;
const GATEWAY_BITS = 3072;

/** The services that {@link StoredAgentKey} uses. */
type KeyServices = Pick<Services, "db" | "sealer" | "now" | "settings">;

const sealPurpose = (fingerprint: string): string => `private key ${fingerprint}`;

/**
 * Creates a key pair for one SSH login, and deletes expired key pairs. The encrypted key pair is stored in the
 * database, because the device's agent may request the signature from another instance.
 */
export const createPrivateKey: Handler<InternalOperations["createPrivateKey"]> = async ({
  services,
  signal,
}) => {
  const pair = await newRsaKeyPair(BITS, signal);
  const createdAt = services.now();
  await services.db.privateKey.deleteMany({ where: { expiresAt: { lte: createdAt } } });
  await insert(services, pair, new Date(createdAt.getTime() + LIFE));
  const { pem, fingerprint } = pair;
  return { data: Buffer.from(pem).toString("base64"), fingerprint, created_at: wireDate(createdAt) };
};

/** Stores a key pair. Agents can request signatures with the key pair until `expiresAt`. */
async function insert(
  { db, sealer, now }: Pick<Services, "sealer" | "now"> & { readonly db: Pick<Transaction, "privateKey"> },
  { pem, fingerprint }: RsaKeyPair,
  expiresAt: Date,
): Promise<void> {
  const sealed = sealer.seal(pem, sealPurpose(fingerprint));
  await db.privateKey.create({ data: { fingerprint, sealed, createdAt: now(), expiresAt } });
}

/** The expiry time of a permanent key pair. */
const NEVER = new Date("9999-12-31T00:00:00Z");

/**
 * The key pair that the gateway uses to log in to agents. All logins and instances use the same key pair, so that
 * agents can pin it. Devices can request signatures with this key pair, but no SSH server accepts these signatures. The
 * reason is that the contract rejects the data that an SSH server requires a client to sign.
 */
export class StoredAgentKey implements AgentKey {
  readonly #services: KeyServices;
  /** Cache of the gateway's private key. It has one entry, whose key is `NEVER`. */
  readonly #pem = new PromiseCache<Date, string>();

  constructor(services: KeyServices) {
    this.#services = services;
  }

  /** Returns the private key in PEM form (PKCS#1). The first call on any instance creates the key. */
  pem(): Promise<string> {
    return this.#pem.get(NEVER, () => this.#findOrCreate());
  }

  /**
   * Returns the public key in SSH format, as base64. Returns undefined if the key pair does not exist yet. On an
   * instance without an SSH port, the first login creates the key pair. If this creation fails, agents enroll without
   * the key, and receive it with a later report.
   */
  async publicKey(): Promise<string | undefined> {
    if (!this.#pem.has(NEVER) && this.#services.settings.sshPort === undefined) return undefined;
    const pem = await this.pem().catch(() => undefined);
    return pem && sshBlobOf(createPublicKey(pem)).toString("base64");
  }

  async #findOrCreate(): Promise<string> {
    const known = await this.#find(this.#services.db);
    if (known !== undefined) return known;
    const pair = await newRsaKeyPair(GATEWAY_BITS, AbortSignal.timeout(LIFE));
    // Another instance may have stored a key pair while this instance created one.
    return inTransaction(this.#services, async (tx) => {
      const other = await this.#find(tx);
      if (other !== undefined) return other;
      await insert({ ...this.#services, db: tx }, pair, NEVER);
      return pair.pem;
    });
  }

  async #find(db: Pick<Transaction, "privateKey">): Promise<string | undefined> {
    const row = await db.privateKey.findFirst({ where: { expiresAt: NEVER } });
    return row === null ? undefined : this.#services.sealer.open(row.sealed, sealPurpose(row.fingerprint));
  }
}

/**
 * Checks that a device is accepted. Devices that are not accepted receive no logins, so their agents need no
 * signatures.
 * @throws ForbiddenError the device is not accepted
 */
async function checkAccepted(services: Services, uid: string): Promise<void> {
  if ((await services.db.device.count({ where: { uid, status: "accepted" } })) > 0) return;
  throw new ForbiddenError("the device is not accepted");
}

export const authSshPublicKey: Handler<PublicOperations["authSshPublicKey"]> = async (context) => {
  const { services, identity, body } = context;
  if ("uid" in identity) await checkAccepted(services, identity.uid);
  const { fingerprint } = body;
  const row = await services.db.privateKey.findUnique({ where: { fingerprint } });
  if (!row || row.expiresAt <= services.now()) throw new NotFoundError("no such private key");
  const key = keyOf(services.sealer.open(row.sealed, sealPurpose(fingerprint)));
  const signature = await promisify(sign)("sha256", Buffer.from(body.data), key);
  return { signature: signature.toString("base64") };
};
