-- AlterTable
ALTER TABLE "Namespace" ADD COLUMN "sessionRecordMode" TEXT NOT NULL DEFAULT 'default';
ALTER TABLE "Namespace" ADD COLUMN "sessionRecordMegabytes" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "Namespace" ADD COLUMN "sshForwarding" TEXT NOT NULL DEFAULT '[]';
