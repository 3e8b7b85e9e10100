import type { Router } from '@koa/router'

/** Alive and answering; open to everyone. */
export function health(router: Router): void {
  router.get('/health', ctx => {
    ctx.body = { status: 'ok', timestamp: new Date().toISOString() }
  })
}
