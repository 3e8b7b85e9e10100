import type { Router } from '@koa/router'
import { createAsset, sendAsset, type Asset } from '#api/edge/assets.ts'
import { buildOpenApi } from '#api/reference/openapi.ts'
import { findInGuides, guideFiles, guidesSecurityPolicy } from '#api/reference/guides.ts'
import { version } from '#api/edge/version.ts'
import { consoleFiles } from '#api/console/files.ts'
import { requireOperator } from '#api/operators/operator-auth.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { countFaultyPipelines } from '#shared/org/base/pipeline-state.postgres.ts'
import { createMetricsCollector } from '#shared/operations/collect-metrics.ts'

/** Pages for people, and what the operator scrapes; they are not in the contract. */
export function pages(router: Router, backend: ApiBackend): void {
  // The OpenAPI document of the served endpoints; open.
  let document: Asset | undefined
  router.get('/openapi.json', async ctx => {
    document ??= createAsset(
      'application/json; charset=utf-8',
      JSON.stringify(buildServedDocument(router)),
    )
    await sendAsset(ctx, document)
  })

  // The pages of the project for people, and for language models.
  let guidePages: Record<string, Asset> | undefined
  router.get(['/guides', '/guides/:file', '/llms.txt'], async ctx => {
    guidePages ??= guideFiles()
    const path = ctx.path.replace(/\/$/, '')
    const query = path === '/guides' ? new URLSearchParams(ctx.querystring).get('q')?.trim() : ''
    const asset = query
      ? createAsset('text/html; charset=utf-8', findInGuides(query.slice(0, 200)))
      : guidePages[path]
    if (!asset) return
    ctx.set('Content-Security-Policy', guidesSecurityPolicy)
    await sendAsset(ctx, asset)
  })

  // The web console, and the API reference. Their files are open; the data that they show needs a credential.
  let files: ReturnType<typeof consoleFiles> | undefined
  router.get(/^\/(?:console(?:\/.*)?|docs\/?)$/, async ctx => {
    files ??= consoleFiles(backend.config.oidc?.name).catch((error: unknown) => {
      files = undefined
      throw error
    })
    const { policy, assets } = await files
    const asset = assets[ctx.path.replace(/\/$/, '')]
    if (!asset) return
    ctx.set('Content-Security-Policy', policy)
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin')
    await sendAsset(ctx, asset)
  })

  // Metrics, for the operator.
  const page = createMetricsCollector(backend, countFaultyPipelines)
  router.get('/metrics', async ctx => {
    await requireOperator(ctx, backend)
    const { type, text } = await page()
    await sendAsset(ctx, createAsset(type, text))
  })

  // Bookmarks of the pages over the queues, which are pages of the console.
  router.get(/^\/admin\/queues(?:\/.*)?$/, ctx => ctx.redirect('/console#/service/queues'))
}

function buildServedDocument(router: Router) {
  const served = new Set(
    router.stack.flatMap(({ path, methods }) =>
      methods.map(method => `${method} ${String(path).replaceAll(String.raw`\:`, ':')}`),
    ),
  )
  return buildOpenApi(version, (method, path) => served.has(`${method} ${path}`))
}
