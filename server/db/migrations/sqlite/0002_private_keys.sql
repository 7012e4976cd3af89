-- CreateTable
CREATE TABLE "PrivateKey" (
    "fingerprint" TEXT NOT NULL PRIMARY KEY,
    "sealed" TEXT NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "expiresAt" DATETIME NOT NULL
);

-- CreateIndex
CREATE INDEX "PrivateKey_expiresAt_idx" ON "PrivateKey"("expiresAt");
