import { hash } from "node:crypto";

/** A device's uid, from what its agent says it is (rules section 7, step 2). The values go in as they are. */
export function deviceUid(device: {
  readonly mac: string;
  readonly publicKey: string;
  readonly tenantId: string;
}): string {
  const { mac, publicKey, tenantId } = device;
  return hash("sha256", `{Identity:{MAC:"${mac}"},PublicKey:"${publicKey}",TenantID:"${tenantId}"}`);
}
