import { createPrivateKey as keyOf, sign } from "node:crypto";
import { promisify } from "node:util";
import type { InternalOperations, PublicOperations } from "@gatehouse-access/sdk/contract";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { wireDate } from "../wireDate.ts";
import { newRsaKeyPair, type RsaKeyPair } from "./rsaKeyPair.ts";

/** How long a key pair signs, in milliseconds (rules section 7). */
const LIFE = 60_000;
/** Bits of a key pair that is made for one login, as the wire has them, and of the gateway's own. */
const BITS = 4096;
const GATEWAY_BITS = 3072;

const sealPurpose = (fingerprint: string): string => `private key ${fingerprint}`;

/**
 * Makes a key pair for one SSH login. It is stored in the database, sealed, because the device's agent may ask another
 * instance to sign. The next creation deletes expired key pairs.
 */
export const createPrivateKey: Handler<InternalOperations["createPrivateKey"]> = async ({
  services,
  signal,
}) => {
  const pair = await newRsaKeyPair(BITS, signal);
  const createdAt = await keep(services, pair, LIFE);
  const { pem, fingerprint } = pair;
  return { data: Buffer.from(pem).toString("base64"), fingerprint, created_at: wireDate(createdAt) };
};

/** @param life how long it signs, in milliseconds */
async function keep(services: Services, { pem, fingerprint }: RsaKeyPair, life: number): Promise<Date> {
  const createdAt = services.now();
  await services.db.privateKey.deleteMany({ where: { expiresAt: { lte: createdAt } } });
  await services.db.privateKey.create({
    data: {
      fingerprint,
      sealed: services.sealer.seal(pem, sealPurpose(fingerprint)),
      createdAt,
      expiresAt: new Date(createdAt.getTime() + life),
    },
  });
  return createdAt;
}

/** How long the gateway logs in with one key pair, in milliseconds: making one takes a good part of a second. */
const GATEWAY_LIFE = 60 * 60_000;

/**
 * The key pair with which the gateway logs in to agents, one for many logins. Whichever device asks the service to sign
 * with it gets nothing that an SSH server would take: the contract refuses what such a server has signed.
 */
export class GatewayKey {
  readonly #services: Services;
  #present: Promise<string> | undefined;
  #endsAt = 0;

  constructor(services: Services) {
    this.#services = services;
  }

  /** The private key, PEM (PKCS#1). It signs for a minute at least. */
  pem(): Promise<string> {
    const time = this.#services.now().getTime();
    if (this.#present === undefined || time > this.#endsAt - LIFE) {
      this.#endsAt = time + GATEWAY_LIFE;
      const made = this.#make();
      this.#present = made;
      made.catch(() => {
        if (this.#present === made) this.#present = undefined;
      });
    }
    return this.#present;
  }

  async #make(): Promise<string> {
    const pair = await newRsaKeyPair(GATEWAY_BITS, AbortSignal.timeout(LIFE));
    await keep(this.#services, pair, GATEWAY_LIFE);
    return pair.pem;
  }
}

/** @throws ForbiddenError the device is not accepted: it gets no logins, so its agent needs no signatures */
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
