-- oldest-beside: 0004_token_uses
-- A token with single use counts for its issuer. Before, it counted for each workload.
-- CreateTable
CREATE TABLE "TokenUse" (
    "issuer" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "workloadId" TEXT NOT NULL,
    "nonceDigest" TEXT,
    "expiresAt" DATETIME NOT NULL,

    PRIMARY KEY ("issuer", "digest")
);

-- CreateIndex
CREATE INDEX "TokenUse_expiresAt_idx" ON "TokenUse"("expiresAt");

-- The uses of a token by several workloads become one use: the one of the first workload.
INSERT INTO "TokenUse" ("issuer", "digest", "workloadId", "nonceDigest", "expiresAt")
SELECT "issuer", "digest", "workloadId", "nonceDigest", "expiresAt"
FROM (
    SELECT "TrustedWorkload"."issuer", "WorkloadTokenUse".*,
        ROW_NUMBER() OVER (PARTITION BY "issuer", "digest" ORDER BY "expiresAt" DESC, "workloadId") AS "place"
    FROM "WorkloadTokenUse" JOIN "TrustedWorkload" ON "TrustedWorkload"."id" = "WorkloadTokenUse"."workloadId"
) AS "uses"
WHERE "place" = 1;

-- DropTable
DROP TABLE "WorkloadTokenUse";
