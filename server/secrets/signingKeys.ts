import { createHash, createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { HOUR } from "@gatehouse-access/sdk/times";
import type { PrismaClient, SigningKey } from "../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction } from "../db/sql/transaction.ts";
import type { Sealer } from "./sealer.ts";

const MODULUS = 2048;
/**
 * Time, in milliseconds, for which the service trusts a retired key. After this time, all user tokens that the key
 * signed have expired.
 */
const RETIRED_LIFE = 72 * HOUR;
/**
 * Minimum interval, in milliseconds, between database lookups of unknown keys. The lookups are necessary because
 * another instance may have created the key.
 */
const LOOKUP_INTERVAL = 1000;

/** RSA keys that sign tokens (RS256). The current key also signs the setup link. */
export interface SigningKeys {
  /** Id of the current key. */
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /**
   * Returns the public key of a trusted signing key: the current key or an older key. Returns undefined for an unknown
   * id.
   */
  find(kid: string): Promise<KeyObject | undefined>;
}

interface Surroundings {
  readonly db: PrismaClient;
  readonly now: () => Date;
  readonly sealer: Sealer;
}

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const purposeOf = (kid: string): string => `signing key ${kid}`;

/** Returns the id of a key: a digest of the public key. */
function kidOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(der).digest("base64url").slice(0, 22);
}

async function insertKey({ sealer, now }: Surroundings, tx: Transaction, pair: KeyPair): Promise<void> {
  const kid = kidOf(pair.publicKey);
  const pem = pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  await tx.signingKey.create({ data: { kid, sealed: sealer.seal(pem, purposeOf(kid)), createdAt: now() } });
}

/** The keys that sign tokens. The database stores the keys, and all instances share it. */
export class DatabaseSigningKeys implements SigningKeys {
  readonly #surroundings: Surroundings;
  #keys = new Map<string, KeyPair>();
  #current = "";
  #lastLookup = 0;
  #lookup: Promise<void> | undefined;

  private constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /**
   * Reads the keys. Creates the first key if no key exists.
   * @throws OperatorError the keys were encrypted with a different instance secret
   */
  static async load(surroundings: Surroundings): Promise<DatabaseSigningKeys> {
    const keys = new DatabaseSigningKeys(surroundings);
    if ((await surroundings.db.signingKey.count()) === 0) {
      const pair = await promisify(generateKeyPair)("rsa", { modulusLength: MODULUS });
      await inTransaction(surroundings, async (tx) => {
        // If several instances start concurrently, only one instance creates the key.
        if ((await tx.signingKey.count()) === 0) await insertKey(surroundings, tx, pair);
      });
    }
    await keys.refresh();
    return keys;
  }

  get kid(): string {
    return this.#current;
  }

  get privateKey(): KeyObject {
    return this.#pair.privateKey;
  }

  get publicKey(): KeyObject {
    return this.#pair.publicKey;
  }

  get #pair(): KeyPair {
    const pair = this.#keys.get(this.#current);
    if (pair === undefined) throw new Error("the database contains no signing key");
    return pair;
  }

  async find(kid: string): Promise<KeyObject | undefined> {
    if (!this.#keys.has(kid)) {
      if (Date.now() - this.#lastLookup > LOOKUP_INTERVAL) {
        this.#lastLookup = Date.now();
        this.#lookup = this.refresh();
      }
      // Concurrent requests whose tokens have unknown keys share one lookup.
      await this.#lookup;
    }
    return this.#keys.get(kid)?.publicKey;
  }

  /** Reads the keys again, to include changes by other instances. Call this method every few seconds. */
  async refresh(): Promise<void> {
    const { db, now, sealer } = this.#surroundings;
    const trustedSince = new Date(now().getTime() - RETIRED_LIFE);
    const rows = await db.signingKey.findMany({
      where: { OR: [{ retiredAt: null }, { retiredAt: { gt: trustedSince } }] },
      orderBy: [{ createdAt: "asc" }, { kid: "asc" }],
    });
    this.#keys = new Map(
      rows.map((row) => [row.kid, this.#keys.get(row.kid) ?? openSigningKey(sealer, row)]),
    );
    this.#current = rows.findLast((row) => row.retiredAt === null)?.kid ?? "";
  }

  /**
   * Creates a new key. From now on, this key signs all tokens. Tokens signed by older keys stay valid until they
   * expire, unless the keys are revoked. After a revocation, users must log in again, and agents enroll again with
   * their next report.
   * @returns id of the new key
   */
  async rotate({ revoke }: { readonly revoke: boolean }): Promise<string> {
    const { now } = this.#surroundings;
    const pair = await promisify(generateKeyPair)("rsa", { modulusLength: MODULUS });
    await inTransaction(this.#surroundings, async (tx) => {
      const ended = { retiredAt: { lte: new Date(now().getTime() - RETIRED_LIFE) } };
      await tx.signingKey.deleteMany({ where: revoke ? {} : ended });
      await tx.signingKey.updateMany({ where: { retiredAt: null }, data: { retiredAt: now() } });
      await insertKey(this.#surroundings, tx, pair);
    });
    await this.refresh();
    return kidOf(pair.publicKey);
  }
}

/**
 * Decrypts a signing key from the database.
 * @throws OperatorError the key was encrypted with a different instance secret
 */
export function openSigningKey(sealer: Sealer, { kid, sealed }: Pick<SigningKey, "kid" | "sealed">): KeyPair {
  const privateKey = createPrivateKey(sealer.open(sealed, purposeOf(kid)));
  return { privateKey, publicKey: createPublicKey(privateKey) };
}
