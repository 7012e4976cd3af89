import { loadSsh2 } from "@gatehouse-access/sdk/ssh2";

/** The SSH library, with fixes for its bugs. */
export const ssh2 = loadSsh2(import.meta.url) as typeof import("ssh2");
