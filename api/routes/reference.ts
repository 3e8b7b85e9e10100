import type { Router } from '@koa/router'
import { assetOf, sendAsset, type Asset } from '#api/edge/assets.ts'
import { openApi } from '#api/reference/openapi.ts'
import { pagePolicy, referencePage } from '#api/reference/page.ts'
import { version } from '#api/edge/version.ts'

/** The OpenAPI document of what is served, and a page to read and try it. Open to everyone. */
export function reference(router: Router): void {
  let document: Asset | undefined
  router.get('/openapi.json', async ctx => {
    document ??= assetOf('application/json; charset=utf-8', JSON.stringify(documentOf(router)))
    await sendAsset(ctx, document)
  })

  let files: Record<string, Asset> | undefined
  router.get(['/docs', '/docs/:file'], async ctx => {
    files ??= referencePage()
    const asset = files[ctx.path.replace(/\/$/, '')]
    if (!asset) return
    ctx.set('Content-Security-Policy', pagePolicy)
    await sendAsset(ctx, asset)
  })
}

function documentOf(router: Router) {
  const served = new Set(
    router.stack.flatMap(({ path, methods }) =>
      methods.map(method => `${method} ${String(path).replaceAll(String.raw`\:`, ':')}`),
    ),
  )
  return openApi(version, (method, path) => served.has(`${method} ${path}`))
}
