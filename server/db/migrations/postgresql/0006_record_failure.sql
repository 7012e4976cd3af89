-- oldest-beside: 0005_tags
-- A namespace chooses what happens to a session that cannot be recorded.
-- AlterTable
ALTER TABLE "Namespace" ADD COLUMN "sessionRecordFailure" TEXT NOT NULL DEFAULT 'continue';

-- The number of entries of a session that the gateway has written, so that a repeated write stores no entry twice.
-- AlterTable
ALTER TABLE "Session" ADD COLUMN "entriesWritten" INTEGER NOT NULL DEFAULT 0;
