-- CreateTable
CREATE TABLE "PrivateKey" (
    "fingerprint" TEXT NOT NULL,
    "sealed" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL,
    "expiresAt" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "PrivateKey_pkey" PRIMARY KEY ("fingerprint")
);

-- CreateIndex
CREATE INDEX "PrivateKey_expiresAt_idx" ON "PrivateKey"("expiresAt");
