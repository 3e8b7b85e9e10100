import { readFileSync } from 'node:fs'
import type { Router } from '@koa/router'
import { document } from '#api/contract/document.ts'

const { version } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string }

/** What this service is and which endpoints it serves; open to everyone. */
export function information(router: Router): void {
  const summaries = new Map(
    Object.values(document.endpoints).map(({ method, path, summary, operation }) => [
      `${method} ${path}`,
      summary || operation,
    ]),
  )
  router.get('/', ctx => {
    const served = router.stack.flatMap(({ path, methods }) =>
      methods.filter(method => method !== 'HEAD').map(method => `${method} ${String(path)}`),
    )
    ctx.body = {
      name: 'Memory Vault',
      version,
      status: 'ok',
      docs: '/',
      endpoints: Object.fromEntries(served.map(route => [route, summaries.get(route) ?? ''])),
    }
  })
}
