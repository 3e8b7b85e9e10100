// Preloaded into every test file, before the hooks of the runner. They record for coverage which files a process
// and all of its children load, and make `t.mockImport` possible, which no test uses. With them Node strips types
// and compiles each file again instead of reading both from its compile cache: a process of the service takes
// twice the CPU to start.
import module from 'node:module'

const isCoverageOn = process.env['_TAPJS_PROCESSINFO_COVERAGE_'] !== '0'

if (!isCoverageOn) {
  const { registerHooks } = module
  module.registerHooks = hooks => {
    const isOfRunner = new Error().stack?.includes('/@tapjs/')
    return isOfRunner ? { deregister() {} } : registerHooks(hooks)
  }
  // What is recorded seems to be there already, so no hook of `require` or of child processes is registered.
  const recorded = Symbol.for('@tapjs/processinfo.ProcessInfoNodeData')
  Object.assign(globalThis, { [recorded]: { files: [], sources: {} } })
}
