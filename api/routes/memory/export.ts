import { Readable } from 'node:stream'
import type { Router } from '@koa/router'
import { ExportVaultQuery } from '#api/contract/contract.ts'
import { callerOf, embeddingsOf, queryOf, sessionOf } from '#api/request.ts'
import type { Backend } from '#shared/backend.ts'
import { exportedLines } from '#shared/bulk/export.ts'
import { requireRetrieve } from '#shared/key/caller.ts'

/** Lines are sent this many characters at a time. */
const pieceLength = 64 * 1024

/** Streams a vault as JSON lines; what it sends is what `POST /v1/memory/import` takes. */
export function exportVault(router: Router, backend: Backend): void {
  router.get('/v1/memory/export', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const { vectors, sessions } = queryOf(ctx, ExportVaultQuery)
    const asked = sessionOf(ctx)
    const lines = exportedLines(backend, caller.scope, {
      session: asked ?? (sessions ? undefined : null),
      embedder: vectors ? await backend.embedders.get(embeddingsOf(ctx)) : undefined,
    })
    // What fails before the first line is answered with its status; later it breaks the stream off.
    const first = await lines.next()
    ctx.type = 'application/x-ndjson'
    ctx.body = Readable.from(piecesOf(first, lines), {
      objectMode: false,
      highWaterMark: pieceLength,
    })
  })
}

async function* piecesOf(
  first: IteratorResult<object>,
  rest: AsyncGenerator<object>,
): AsyncGenerator<string> {
  try {
    let piece = ''
    for (let next = first; !next.done; next = await rest.next()) {
      piece += `${JSON.stringify(next.value)}\n`
      if (piece.length < pieceLength) continue
      yield piece
      piece = ''
    }
    if (piece !== '') yield piece
  } finally {
    await rest.return(undefined)
  }
}
