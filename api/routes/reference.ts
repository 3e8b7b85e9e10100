import type { Router } from '@koa/router'
import { createAsset, sendAsset, type Asset } from '#api/edge/assets.ts'
import { buildOpenApi } from '#api/reference/openapi.ts'
import { docsSecurityPolicy, referencePageFiles } from '#api/reference/page.ts'
import { version } from '#api/edge/version.ts'

/** The OpenAPI document of the served endpoints, and a page to read and try it; open. */
export function reference(router: Router): void {
  let document: Asset | undefined
  router.get('/openapi.json', async ctx => {
    document ??= createAsset(
      'application/json; charset=utf-8',
      JSON.stringify(buildServedDocument(router)),
    )
    await sendAsset(ctx, document)
  })

  let files: Record<string, Asset> | undefined
  router.get(['/docs', '/docs/:file'], async ctx => {
    files ??= referencePageFiles()
    const asset = files[ctx.path.replace(/\/$/, '')]
    if (!asset) return
    ctx.set('Content-Security-Policy', docsSecurityPolicy)
    await sendAsset(ctx, asset)
  })
}

function buildServedDocument(router: Router) {
  const served = new Set(
    router.stack.flatMap(({ path, methods }) =>
      methods.map(method => `${method} ${String(path).replaceAll(String.raw`\:`, ':')}`),
    ),
  )
  return buildOpenApi(version, (method, path) => served.has(`${method} ${path}`))
}
