-- oldest-beside: 0005_tags
-- Triggers keep the sizes, so that an older version of the service keeps them too.
-- CreateTable
CREATE TABLE "RecordingSize" (
    "tenantId" TEXT NOT NULL,
    "slot" INTEGER NOT NULL,
    "size" BIGINT NOT NULL,

    PRIMARY KEY ("tenantId", "slot"),
    CONSTRAINT "RecordingSize_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateIndex
CREATE INDEX "RecordingSize_slot_idx" ON "RecordingSize"("slot");

-- CreateIndex
CREATE INDEX "Session_tenantId_recorded_lastSeen_idx" ON "Session"("tenantId", "recorded", "lastSeen");

-- Adds up the sizes of recordings by namespace, so that nothing has to read the sessions.
CREATE TRIGGER "Session_size_insert" AFTER INSERT ON "Session" WHEN NEW."recorded" AND NEW."recordedSize" <> 0 BEGIN
    INSERT INTO "RecordingSize" ("tenantId", "slot", "size") VALUES (NEW."tenantId", 0, NEW."recordedSize")
    ON CONFLICT DO UPDATE SET "size" = "size" + NEW."recordedSize";
END;

-- If the namespace is deleted with its sessions, its size no longer exists or is deleted too. Nothing recreates it.
CREATE TRIGGER "Session_size_delete" AFTER DELETE ON "Session" WHEN OLD."recorded" AND OLD."recordedSize" <> 0 BEGIN
    UPDATE "RecordingSize" SET "size" = "size" - OLD."recordedSize" WHERE "tenantId" = OLD."tenantId";
END;

CREATE TRIGGER "Session_size_update" AFTER UPDATE OF "recorded", "recordedSize" ON "Session"
WHEN OLD."recorded" * OLD."recordedSize" <> NEW."recorded" * NEW."recordedSize" BEGIN
    INSERT INTO "RecordingSize" ("tenantId", "slot", "size")
    VALUES (NEW."tenantId", 0, NEW."recorded" * NEW."recordedSize" - OLD."recorded" * OLD."recordedSize")
    ON CONFLICT DO UPDATE SET
        "size" = "size" + NEW."recorded" * NEW."recordedSize" - OLD."recorded" * OLD."recordedSize";
END;

-- The triggers exist before this statement, so that no concurrent change is missed.
INSERT INTO "RecordingSize" ("tenantId", "slot", "size")
SELECT "tenantId", 0, SUM("recordedSize") FROM "Session" WHERE "recorded" GROUP BY "tenantId";
