-- AlterTable
ALTER TABLE "Device" ADD COLUMN "instanceId" TEXT;
ALTER TABLE "Device" ADD COLUMN "tunnelId" TEXT;

-- AlterTable
ALTER TABLE "Session" ADD COLUMN "instanceId" TEXT;

-- CreateTable
CREATE TABLE "Instance" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "peerUrl" TEXT,
    "lastSeen" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "TerminalTicket" (
    "digest" TEXT NOT NULL PRIMARY KEY,
    "sealed" TEXT NOT NULL,
    "expiresAt" DATETIME NOT NULL
);

-- CreateIndex
CREATE INDEX "TerminalTicket_expiresAt_idx" ON "TerminalTicket"("expiresAt");

-- CreateIndex
CREATE INDEX "Session_instanceId_idx" ON "Session"("instanceId");
