// The health check of a container: exits with 0 while this process answers at METRICS_PORT, or else PORT.
const port = process.env.METRICS_PORT || process.env.PORT || 3000
const check = async () => {
  const answer = await fetch(`http://127.0.0.1:${port}/health/live`, {
    signal: AbortSignal.timeout(2_500),
  })
  return answer.ok
}
process.exitCode = (await check().catch(() => false)) ? 0 : 1
