import type { Router } from '@koa/router'
import { contractDocument } from '#api/contract/document.ts'
import { version } from '#api/edge/version.ts'

/** The name and version of the service and its endpoints; open. */
export function information(router: Router): void {
  const summaries = new Map(
    Object.values(contractDocument.endpoints).map(({ method, path, summary, operation }) => [
      `${method} ${path}`,
      summary || operation,
    ]),
  )
  router.get('/', ctx => {
    const served = router.stack.flatMap(({ path, methods }) =>
      methods.map(method => `${method} ${String(path)}`).filter(route => summaries.has(route)),
    )
    ctx.body = {
      name: 'Memory Vault',
      version,
      status: 'ok',
      docs: '/docs',
      endpoints: Object.fromEntries(served.map(route => [route, summaries.get(route) ?? ''])),
    }
  })
}
