import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

export type RunningNginx = { port: number; stop(): void }

/** Debian keeps it where users do not look for programs. */
const programs = ['nginx', '/usr/sbin/nginx']

/** nginx as a reverse proxy with one process before the model; undefined when it is not installed. */
export async function startNginx(modelPort: number): Promise<RunningNginx | undefined> {
  const program = programs.find(name => spawnSync(name, ['-v']).status === 0)
  if (program === undefined) return undefined
  const directory = mkdtempSync(join(tmpdir(), 'vault-bench-nginx-'))
  const port = await freePort()
  const file = join(directory, 'nginx.conf')
  writeFileSync(file, settings(directory, port, modelPort))
  const child = spawn(program, ['-p', directory, '-c', file, '-e', 'stderr'], { stdio: 'ignore' })
  const stop = (): void => {
    child.kill('SIGTERM')
    rmSync(directory, { recursive: true, force: true })
  }
  if (await isListening(child, port)) return { port, stop }
  stop()
  return undefined
}

const settings = (directory: string, port: number, modelPort: number): string => `
daemon off;
worker_processes 1;
pid ${directory}/pid;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  client_max_body_size 32m;
  client_body_buffer_size 1m;
  keepalive_requests 10000000;
  upstream model { server 127.0.0.1:${modelPort}; keepalive 128; keepalive_requests 10000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`

/** A port that the kernel has just given and taken back. */
function freePort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

async function isListening(child: ChildProcess, port: number): Promise<boolean> {
  for (let tried = 0; tried < 50 && child.exitCode === null; tried++) {
    const isOpen = await new Promise<boolean>(resolve => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.once('error', () => resolve(false)).once('connect', () => socket.destroy())
    })
    if (isOpen) return true
    await delay(100)
  }
  return false
}
