import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { expect, test } from "vitest";
import { isValidSignature } from "../../../server/gateway/ssh/signature.ts";

const SIGNED = Buffer.from("the signed bytes");

/** Returns a field of SSH's wire format: the length and the bytes. */
function field(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Returns the integers of a DER structure in their order. */
function integersOf(der: Buffer): Buffer[] {
  const integers: Buffer[] = [];
  let offset = 0;
  while (offset < der.length) {
    const [tag = 0, first = 0] = der.subarray(offset);
    const extra = first > 0x80 ? first - 0x80 : 0;
    const start = offset + 2 + extra;
    const length = extra > 0 ? der.readUIntBE(offset + 2, extra) : first;
    const content = der.subarray(start, start + length);
    if (tag === 0x02) integers.push(content);
    if (tag === 0x30) integers.push(...integersOf(content));
    // The first byte of a bit string is the number of unused bits.
    if (tag === 0x03) integers.push(...integersOf(content.subarray(1)));
    offset = start + length;
  }
  return integers;
}

const wireOf = (type: string, fields: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from(type), ...fields].map(field));

const spki = (key: KeyObject) => key.export({ format: "der", type: "spki" });

test("a valid signature of a DSA key is refused, and one of an Ed25519 key is accepted", () => {
  const dsa = generateKeyPairSync("dsa", { modulusLength: 1024, divisorLength: 160 });
  const [p, q, g, y] = integersOf(spki(dsa.publicKey)) as [Buffer, Buffer, Buffer, Buffer];
  const ed25519 = generateKeyPairSync("ed25519");
  const proofs = [
    {
      key: wireOf("ssh-dss", [p, q, g, y]),
      signature: sign("sha1", SIGNED, { key: dsa.privateKey, dsaEncoding: "ieee-p1363" }),
    },
    {
      key: wireOf("ssh-ed25519", [spki(ed25519.publicKey).subarray(-32)]),
      signature: sign(null, SIGNED, ed25519.privateKey),
    },
  ];
  const isValid = proofs.map((proof) => isValidSignature({ ...proof, signed: SIGNED, digest: undefined }));
  expect(isValid).toEqual([false, true]);
});
