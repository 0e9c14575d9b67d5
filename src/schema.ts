/**
 * `turnloop/schema`: TypeBox's `Type` and `Static`, in the version the library checks with (SPEC 8.6).
 * @module turnloop/schema
 */
export { type Static, type TSchema, Type } from "@sinclair/typebox";
