/** A user row with the required columns. */
export function user(username: string) {
  return {
    id: username,
    username,
    name: username,
    email: `${username}@example.com`,
    passwordHash: "-",
    createdAt: new Date("2026-01-02T03:04:05.678Z"),
  };
}

/** A device row with the required columns. */
export function device<More extends object>(tenantId: string, uid: string, at: Date, more: More) {
  return {
    tenantId,
    uid,
    name: uid,
    mac: "",
    publicKey: "",
    infoId: "",
    infoPrettyName: "",
    infoVersion: "",
    infoArch: "",
    infoPlatform: "native",
    statusUpdatedAt: at,
    createdAt: at,
    lastSeen: at,
    ...more,
  };
}
