import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

/** The key of `localhost` until 2126, signed by itself; it proves nothing and protects nothing. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6EUp3UOqXz0/od6b
BORHuG9es/L8Bh8ng46o2DYKy+OhRANCAAT6hCAO9kp8cTq3el7NTmc1TvyyPr9D
D3x2X9JwWvUUYm0P3xAtTs2Xpmn0dV6QBlBLprgtA1nYCvqWpJ+xGonN
-----END PRIVATE KEY-----`
const cert = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIURVZ23ze4/uSb5BPVDTbWQiNDHz4wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNjA1MTUzM1oYDzIxMjYxMTAy
MDUxNTMzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAT6hCAO9kp8cTq3el7NTmc1TvyyPr9DD3x2X9JwWvUUYm0P3xAtTs2X
pmn0dV6QBlBLprgtA1nYCvqWpJ+xGonNo28wbTAdBgNVHQ4EFgQUI3OmOTAAfLz9
YBz3SYm3/Mo9X8wwHwYDVR0jBBgwFoAUI3OmOTAAfLz9YBz3SYm3/Mo9X8wwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgWd6dbuCKMT071Jml9ApiCqEx2HQpZavcpO4yLbspSkYCIQCF
jYtEX9iMruWM4u3e1E6cPIab53krvhNjGuwdMM7bjg==
-----END CERTIFICATE-----`

/** The key and the certificate of `localhost`, which this process accepts until the end of the test. */
export function trustLocalhost(t: Test): { key: string; cert: string } {
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, cert])
  t.teardown(() => setDefaultCACertificates(before))
  return { key, cert }
}

/** An https server on loopback, whose certificate this process accepts until the end of the test. */
export async function startHttpsServer(t: Test, answer: RequestListener): Promise<string> {
  const { port } = new URL(await listen(t, createServer(trustLocalhost(t), answer)))
  return `https://localhost:${port}`
}
