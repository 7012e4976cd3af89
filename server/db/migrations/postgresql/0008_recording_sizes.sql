-- oldest-beside: 0005_tags
-- Triggers keep the sizes, so that an older version of the service keeps them too.
-- CreateTable
CREATE TABLE "RecordingSize" (
    "tenantId" TEXT NOT NULL,
    "slot" INTEGER NOT NULL,
    "size" BIGINT NOT NULL,

    CONSTRAINT "RecordingSize_pkey" PRIMARY KEY ("tenantId","slot")
);

-- CreateIndex
CREATE INDEX "RecordingSize_slot_idx" ON "RecordingSize"("slot");

-- CreateIndex
CREATE INDEX "Session_tenantId_recorded_lastSeen_idx" ON "Session"("tenantId", "recorded", "lastSeen");

-- AddForeignKey
ALTER TABLE "RecordingSize" ADD CONSTRAINT "RecordingSize_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace"("tenantId") ON DELETE CASCADE ON UPDATE CASCADE;

-- Space beside the rows, which change often, for their next versions: an update then changes no index.
ALTER TABLE "RecordingSize" SET (fillfactor = 50);

-- Insertions and deletions have triggers of statements, because one statement can insert or delete any number of
-- sessions: see 0001_initial. Updates have a trigger of rows, because only such a trigger can ignore the frequent
-- updates of other columns.
CREATE FUNCTION "addInsertedRecordings"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "RecordingSize" AS kept ("tenantId", "slot", "size")
    SELECT "tenantId", pg_backend_pid(), SUM("recordedSize") FROM inserted WHERE "recorded" GROUP BY 1
    ON CONFLICT ("tenantId", "slot") DO UPDATE SET "size" = kept."size" + EXCLUDED."size";
    RETURN NULL;
END $$;

-- A namespace that is deleted with its sessions has no size any more.
CREATE FUNCTION "subtractDeletedRecordings"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "RecordingSize" AS kept ("tenantId", "slot", "size")
    SELECT "tenantId", pg_backend_pid(), -SUM("recordedSize") FROM deleted WHERE "recorded" GROUP BY 1
    HAVING EXISTS (SELECT FROM "Namespace" WHERE "Namespace"."tenantId" = deleted."tenantId")
    ON CONFLICT ("tenantId", "slot") DO UPDATE SET "size" = kept."size" + EXCLUDED."size";
    RETURN NULL;
END $$;

CREATE FUNCTION "addUpdatedRecording"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "RecordingSize" AS kept ("tenantId", "slot", "size")
    VALUES (
        NEW."tenantId", pg_backend_pid(),
        NEW."recorded"::int * NEW."recordedSize"::bigint - OLD."recorded"::int * OLD."recordedSize"::bigint
    )
    ON CONFLICT ("tenantId", "slot") DO UPDATE SET "size" = kept."size" + EXCLUDED."size";
    RETURN NULL;
END $$;

CREATE TRIGGER "Session_size_insert" AFTER INSERT ON "Session" REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION "addInsertedRecordings"();

CREATE TRIGGER "Session_size_delete" AFTER DELETE ON "Session" REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION "subtractDeletedRecordings"();

CREATE TRIGGER "Session_size_update" AFTER UPDATE OF "recorded", "recordedSize" ON "Session" FOR EACH ROW
WHEN (OLD."recorded"::int * OLD."recordedSize" <> NEW."recorded"::int * NEW."recordedSize")
EXECUTE FUNCTION "addUpdatedRecording"();

-- The triggers exist before this statement, so that no concurrent change is missed.
INSERT INTO "RecordingSize" ("tenantId", "slot", "size")
SELECT "tenantId", 0, SUM("recordedSize") FROM "Session" WHERE "recorded" GROUP BY "tenantId";
