import type { Router } from '@koa/router'
import type { Middleware } from 'koa'

/**
 * Dispatches requests, those of paths without parameters by a map: for each request a router tries the pattern of every
 * route, over a hundred of them, and composes its handlers. Other spellings of such a path are left to the router.
 */
export function dispatchRoutes(router: Router): Middleware {
  const dispatch = router.routes() as unknown as Middleware
  const routes = new Map<string, { path: string; handle: Middleware }>()
  for (const { path, methods, paramNames } of router.stack) {
    if (typeof path !== 'string' || paramNames.length > 0 || path.includes(':')) continue
    for (const method of methods) {
      const { pathAndMethod } = router.match(path, method)
      const [handle, ...others] = pathAndMethod.flatMap(({ stack }) => stack)
      // Where several handlers serve a path, the router decides between them.
      if (handle && others.length === 0)
        routes.set(`${method} ${path}`, { path, handle: handle as unknown as Middleware })
    }
  }
  return (ctx, next) => {
    const route = routes.get(`${ctx.method} ${ctx.path}`)
    if (!route) return dispatch(ctx, next)
    // As the router does.
    Object.assign(ctx, { _matchedRoute: route.path, params: {} })
    return route.handle(ctx, next)
  }
}
