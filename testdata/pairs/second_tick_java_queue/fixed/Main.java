import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Works off a queue of letters. A timer takes all that are there every 20 ms. */
public class Main {
    public static void main(String[] words) throws InterruptedException {
        ConcurrentLinkedQueue<Integer> letters = new ConcurrentLinkedQueue<>();
        for (int n = 1; n <= 50; n++) {
            letters.add(n);
        }
        CountDownLatch open = new CountDownLatch(letters.size());
        long[] sum = {0};
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
        Runnable take = () -> {
            for (Integer letter = letters.poll(); letter != null; letter = letters.poll()) {
                sum[0] += letter * letter;
                open.countDown();
            }
        };
        timer.scheduleWithFixedDelay(take, 20, 20, TimeUnit.MILLISECONDS);
        open.await();
        timer.shutdown();
        System.out.println("sum " + sum[0]);
    }
}
