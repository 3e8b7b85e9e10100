import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { proxyPassthrough } from '#api/proxy/pass-through.ts'
import { providerRoutes, routePattern } from '#api/proxy/provider-routes.ts'

/** Endpoints of providers that are forwarded without memory. */
export function passThrough(router: Router, backend: ApiBackend): void {
  for (const route of providerRoutes) {
    const pattern = routePattern(route)
    const handle = (ctx: Context): Promise<void> => {
      const pathModel = pattern.exec(ctx.path)?.groups?.model
      return proxyPassthrough(ctx, backend, { route, pathModel })
    }
    router.register(pattern, route.methods, handle, { pathAsRegExp: true })
    // Listed and logged as clients write it.
    router.stack.at(-1)!.path = route.path
  }
}
