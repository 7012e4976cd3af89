-- oldest-beside: 0007_instance_schemas
-- Instances of older versions register no schema, so they would not stop when a later migration requires it.
ALTER TABLE "Instance" ADD COLUMN "schema" TEXT;
