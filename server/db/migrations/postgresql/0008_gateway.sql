-- AlterTable
ALTER TABLE "Device" ADD COLUMN     "instanceId" TEXT,
ADD COLUMN     "tunnelId" TEXT;

-- AlterTable
ALTER TABLE "Session" ADD COLUMN     "instanceId" TEXT;

-- CreateTable
CREATE TABLE "Instance" (
    "id" TEXT NOT NULL,
    "peerUrl" TEXT,
    "lastSeen" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "Instance_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "TerminalTicket" (
    "digest" TEXT NOT NULL,
    "sealed" TEXT NOT NULL,
    "expiresAt" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "TerminalTicket_pkey" PRIMARY KEY ("digest")
);

-- CreateIndex
CREATE INDEX "TerminalTicket_expiresAt_idx" ON "TerminalTicket"("expiresAt");

-- CreateIndex
CREATE INDEX "Session_instanceId_idx" ON "Session"("instanceId");
