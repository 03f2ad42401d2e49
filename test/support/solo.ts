/** One gateway with its embedded voter, as a process: for what has nothing to do with Redis. */
import { systemClock } from '../../src/clock.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { gatewayConfig, secretFiles, type Settings } from './config.ts';
import { program } from './program.ts';

export async function startSolo(applicationUrl: string, settings: Settings = {}): Promise<Gateway> {
  return await startGateway(program, systemClock, {
    config: gatewayConfig(applicationUrl, [], settings),
    files: secretFiles,
  });
}
