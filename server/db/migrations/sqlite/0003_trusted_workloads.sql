-- oldest-beside: 0003_trusted_workloads
-- CreateTable
CREATE TABLE "TrustedWorkload" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "issuer" TEXT NOT NULL,
    "audience" TEXT NOT NULL,
    "claims" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "maxSessionMinutes" INTEGER NOT NULL,
    "singleUse" BOOLEAN NOT NULL,
    "createdBy" TEXT NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "updatedAt" DATETIME NOT NULL,
    "creationKey" TEXT,
    "declaredBy" TEXT,
    CONSTRAINT "TrustedWorkload_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "WorkloadTokenUse" (
    "workloadId" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "nonceDigest" TEXT,
    "expiresAt" DATETIME NOT NULL,

    PRIMARY KEY ("workloadId", "digest"),
    CONSTRAINT "WorkloadTokenUse_workloadId_fkey" FOREIGN KEY ("workloadId") REFERENCES "TrustedWorkload" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateIndex
CREATE UNIQUE INDEX "TrustedWorkload_tenantId_name_key" ON "TrustedWorkload"("tenantId", "name");

-- CreateIndex
CREATE UNIQUE INDEX "TrustedWorkload_tenantId_creationKey_key" ON "TrustedWorkload"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "WorkloadTokenUse_expiresAt_idx" ON "WorkloadTokenUse"("expiresAt");
