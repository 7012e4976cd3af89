-- AlterTable
ALTER TABLE "Namespace" ADD COLUMN     "sessionRecordMegabytes" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "sessionRecordMode" TEXT NOT NULL DEFAULT 'default',
ADD COLUMN     "sshForwarding" TEXT NOT NULL DEFAULT '[]';
