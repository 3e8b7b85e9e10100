import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Router, RouterContext } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { rejectMultipart, requireEncoding } from '#api/edge/body.ts'
import { bodyShareOf } from '#api/edge/body-budget.ts'
import { BodyBytes, streamBody } from '#api/edge/body-stream.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { ndjsonLimits } from '#api/edge/ndjson.ts'
import { sendOperationOutcome } from '#api/edge/operation-response.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import type { UploadAnswer } from '#api/contract/generated/types.ts'
import { presentPage } from '#api/present/page.ts'
import { acceptClaimed, requireFileAllowed } from '#api/routes/bulk.ts'
import { readInProcess } from '#api/routes/files/read-in-process.ts'
import { requireRetrievePermission, requireStorePermission } from '#shared/access/caller.ts'
import { parseStart } from '#shared/core/dates.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { formatUuid } from '#shared/core/ids.ts'
import { readPage } from '#shared/core/page.ts'
import type { NumberedLine, UploadedLine } from '#shared/domain/file-types.ts'
import { parseMetadata, parseMetadataObject } from '#shared/domain/metadata.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import {
  findPieces,
  listDocuments,
  type ListedDocument,
} from '#shared/vault/bulk/documents.mongo.ts'
import { listKeptFiles, readKeptBytes } from '#shared/vault/bulk/kept-files.postgres.ts'
import { endEarlierVersions } from '#shared/vault/bulk/files.postgres.ts'
import { pieceKey } from '#shared/vault/bulk/upload-lines.ts'
import { deleteInParts } from '#shared/vault/delete/delete-memories.ts'

/** The endpoints of `contract/files.md`: documents, whose text becomes memories. */
export function files(router: Router, backend: ApiBackend): void {
  // Stores the text of a document; its job removes what an earlier version had and this one has not.
  endpoint(router, backend, {
    route: 'POST /v1/memory/files',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle(request, ctx) {
      const { caller, query, idempotency } = request
      if (!(await idempotency.wasUsed())) requireFileAllowed(caller)
      const { name, file_id: id = idOfName(name) } = query
      const given = parseMetadataObject(query.metadata ?? '{}', 'metadata')
      const { page: _, section: __, ...own } = given
      const session = resolveSession(ctx, query.session_id)
      const { redaction } = caller.keyRow
      const embeddings = embeddingModelForRequest(ctx, caller, query.embeddings)
      if (embeddings !== undefined) await backend.embedders.get(embeddings)
      // The file could not be found by it any more.
      if (redaction && applyRedaction(redaction, id, 'file_id') !== id)
        throw refusal('invalid', 'fileIdKeptOut')
      // A copy that is not redacted would undo the policy.
      const { keepFiles } = caller.keyRow.storage
      const kept = keepFiles && !redaction ? new BodyBytes() : undefined
      const { pieces, end } = await readInProcess(caller.account, readBody(ctx, kept), {
        name,
        mediaType: ctx.request.type,
        takesPictures: backend.config.captionModel !== null,
      })
      const { left_out: leftOut } = end
      if (pieces.length === 0) throw withoutText(name, leftOut)
      const at = query.timestamp === undefined ? undefined : parseStart(query.timestamp)
      const from = { ...own, file: name, file_id: id }
      const lines = pieces.map(({ content, picture, ...place }, index): UploadedLine => ({
        // A line has a text; that of a picture follows when it is stored. Its words are a model's, not the file's.
        content: picture ? `picture ${picture.digest}` : content,
        ...(picture && { picture: { digest: picture.digest, mediaType: picture.mediaType } }),
        role: 'system',
        ...(at !== undefined && { timestamp: at + index }),
        metadata: parseMetadata({ ...from, ...place, origin: picture ? 'model' : 'import' })!,
      }))
      const operation = await acceptClaimed(ctx, backend, request, {
        kind: 'upload',
        source: toJsonLines(lines),
        limits: { ...ndjsonLimits.upload, bytesMax: Infinity },
        reader: {
          redaction,
          check: value => value as NumberedLine<UploadedLine>,
          keyOf: line => pieceKey(contentHash(line.content), line.metadata),
        },
        session,
        embeddings,
        replaces: false,
        document: id,
        keep: kept && { name, parts: kept.parts },
        pictures: pieces.flatMap(({ picture }) => picture ?? []),
      })
      kept?.free()
      bodyShareOf(ctx).release()
      await sendOperationOutcome(ctx, backend, caller, operation)
      if (ctx.status >= 300) return
      const { kind, pages } = end
      const answer = ctx.body as Partial<UploadAnswer>
      const count = answer.stats?.pictures_left_out ?? 0
      if (count > 0) leftOut.push({ what: 'pictures without a caption', count })
      const files = await listKeptFiles(backend.postgres.query, caller.scope.vault, id)
      const isKept = files.some(file => file.operation === operation)
      const file = { file_id: id, name, kind, pages, left_out: leftOut, kept: isKept }
      const notKept = 'The redaction policy is on, and a copy that is not redacted would undo it'
      ctx.body = presentStored(answer, {
        ...file,
        ...(keepFiles && redaction && { not_kept: notKept }),
      })
    },
  })

  // Pages through the documents of a vault.
  endpoint(router, backend, {
    route: 'GET /v1/memory/files',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller: { scope }, query: { limit, cursor } }, ctx) {
      const files = await listKeptFiles(backend.postgres.query, scope.vault)
      const kept = new Map(files.flatMap(row => (row.isStored ? [[row.fileId, row.size]] : [])))
      const positionOf = ({ id, session }: ListedDocument): string => JSON.stringify([id, session])
      const listed = (await listDocuments(backend, scope))
        .map(row => ({ ...row, position: positionOf(row), keptBytes: kept.get(row.id) ?? 0 }))
        .toSorted((one, other) => (one.position < other.position ? -1 : 1))
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: ['files', scope.vault, scope.epoch] },
        async (after: string = '', max) =>
          listed.filter(({ position }) => position > after).slice(0, max),
        ({ position }) => position,
      )
      ctx.body = presentPage(page, presentDocument)
    },
  })

  // Gives back a file that the policy keeps, byte for byte.
  endpoint(router, backend, {
    route: 'GET /v1/memory/files/content',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller: { scope }, query: { file_id: id } }, ctx) {
      const { query } = backend.postgres
      const kept = (await listKeptFiles(query, scope.vault, id)).find(({ isStored }) => isStored)
      if (!kept || (await findPieces(backend.mongo, scope, id)).length === 0)
        throw new Refusal('missing', 'No such file is kept', 'GET /v1/memory/files tells which are')
      ctx.attachment(kept.name)
      // Not the type that the client named: a browser shows none of it.
      ctx.type = 'application/octet-stream'
      ctx.length = kept.size
      ctx.body = Readable.from(readKeptBytes(query, { vault: scope.vault, id: kept.id }))
    },
  })

  // Removes a document with all its memories.
  endpoint(router, backend, {
    route: 'DELETE /v1/memory/files',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, query: { file_id: id } }, ctx) {
      await endEarlierVersions(backend.postgres.query, caller.scope.vault, id)
      const all = await findPieces(backend.mongo, caller.scope, id)
      if (all.length === 0)
        throw new Refusal('missing', 'No such file', 'GET /v1/memory/files lists them')
      await deleteInParts(backend, caller, all)
      ctx.body = { file_id: id, deleted: all.length }
    },
  })
}

/** The id of a file that the client gives none: the same for the same name. */
const idOfName = (name: string): string =>
  formatUuid(createHash('sha256').update(name.normalize('NFC')).digest().subarray(0, 16))

/** @param kept receives the bytes, which are held while they arrive */
function readBody(ctx: RouterContext, kept?: BodyBytes): AsyncIterable<Uint8Array> {
  const encoding = requireEncoding(ctx, ['identity', 'gzip'], 'Send the file plain, or with gzip')
  rejectMultipart(ctx, 'Send the file itself, such as with curl --data-binary @report.pdf')
  allowSlowBody(ctx.req)
  const share = bodyShareOf(ctx)
  const body = streamBody(ctx, encoding, share.dropped)
  let bytes = 0
  const held = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      kept!.push(chunk)
      share.hold((bytes += chunk.length))
      yield chunk
    }
  }
  return kept ? held() : body
}

function withoutText(name: string, leftOut: readonly { what: string; count: number }[]): Refusal {
  const why = leftOut.map(({ what, count }) => `${what}: ${count}`).join(', ')
  return refusal('invalid', 'documentWithoutText', { name, why: why && ` (${why})` })
}

async function* toJsonLines(lines: readonly UploadedLine[]): AsyncGenerator<Uint8Array> {
  for (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`)
}

/** The answer of an upload, or of one that goes on, with what was read of the file. */
function presentStored(
  { status, operation_id, stats, errors, message }: Partial<UploadAnswer>,
  file: object,
) {
  if (!stats) return { status, operation_id, message, ...file }
  const { memories, stored, skipped, failed, replaced } = stats
  const counts = { replaced, memories, stored, skipped, failed }
  return { status, ...file, ...counts, ...(errors && { errors }), operation_id }
}

const presentDocument = (row: ListedDocument & { keptBytes: number }) => ({
  file_id: row.id,
  name: row.name,
  session_id: row.session,
  memories: row.memories,
  pages: row.pages,
  tokens: row.tokens,
  stored_at: row.storedAt.toISOString(),
  kept_bytes: row.keptBytes,
})
