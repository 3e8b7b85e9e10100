import type { Router } from '@koa/router'
import { sendAsset, type Asset } from '#api/edge/assets.ts'
import { consoleFiles } from '#api/console/files.ts'
import { consolePolicy } from '#api/console/page.ts'

/** The web console. Its files are open; the data that they show needs a credential. */
export function consolePages(router: Router): void {
  let files: Promise<Record<string, Asset>> | undefined
  router.get(/^\/console(?:\/.*)?$/, async ctx => {
    files ??= consoleFiles().catch((error: unknown) => {
      files = undefined
      throw error
    })
    const asset = (await files)[ctx.path.replace(/\/$/, '')]
    if (!asset) return
    ctx.set('Content-Security-Policy', consolePolicy)
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin')
    await sendAsset(ctx, asset)
  })
}
