import { createHash } from "node:crypto";

/** A device's uid, from what its agent says it is (rules section 7, step 2). The values go in as they are. */
export function deviceUid(device: {
  readonly mac: string;
  readonly publicKey: string;
  readonly tenantId: string;
}): string {
  const { mac, publicKey, tenantId } = device;
  return createHash("sha256")
    .update(`{Identity:{MAC:"${mac}"},PublicKey:"${publicKey}",TenantID:"${tenantId}"}`)
    .digest("hex");
}
