const AT = "2026-01-02T03:04:05.678+00:00";

const session = (uid: string, recorded: boolean, size: number) =>
  `('${uid}', 't', 'd', '', '', '', '', '${AT}', '${AT}', ${recorded}, ${size})`;

/** SQL for a namespace with three recordings of 5,000,000,000 bytes together, and a session without a recording. */
export const OLD_RECORDINGS = `
  INSERT INTO "User" ("id", "username", "name", "email", "passwordHash", "createdAt")
    VALUES ('ana', 'ana', 'ana', 'ana@example.com', '-', '${AT}');
  INSERT INTO "Namespace" ("tenantId", "name", "ownerId", "createdAt") VALUES ('t', 'lab', 'ana', '${AT}');
  INSERT INTO "Device" ("uid", "tenantId", "name", "mac", "infoId", "infoPrettyName", "infoVersion", "infoArch",
      "infoPlatform", "publicKey", "statusUpdatedAt", "createdAt", "lastSeen")
    VALUES ('d', 't', 'd', '', '', '', '', '', '', '', '${AT}', '${AT}', '${AT}');
  INSERT INTO "Session" ("uid", "tenantId", "deviceUid", "username", "ipAddress", "type", "term", "startedAt", "lastSeen",
      "recorded", "recordedSize")
    VALUES ${[session("s1", true, 2_000_000_000), session("s2", true, 2_000_000_000), session("s3", true, 1_000_000_000), session("s4", false, 7)].join(", ")};`;
