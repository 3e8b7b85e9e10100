import { Refusal } from '#shared/core/errors.ts'

/** Whether a line has the fields that all lines of exports have, and rows of a search have not. */
const isExported = (line: unknown): boolean =>
  ['id', 'tier', 'session_id'].every(name => hasField(line, name))

const hasField = (line: unknown, name: string): boolean =>
  typeof line === 'object' && line !== null && Object.hasOwn(line, name)

/** @throws Refusal `invalid` for a line of an export, in a file of the other kind. */
export function refuseExportLine(line: unknown): void {
  if (isExported(line))
    throw new Refusal('invalid', 'a line of an export: POST /v1/memory/import takes it')
}

/** @throws Refusal `invalid` for a line of an upload, in a file of the other kind. */
export function refuseUploadLine(line: unknown): void {
  if (hasField(line, 'content') && !hasField(line, 'id') && !hasField(line, 'tier'))
    throw new Refusal('invalid', 'a line of an upload: POST /v1/memory/upload takes it')
}
