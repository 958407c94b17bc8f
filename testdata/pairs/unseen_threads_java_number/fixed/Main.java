import java.util.concurrent.atomic.AtomicLong;

/** Adds up the digits of numbers. It is too little for threads. */
public class Main {
    private static final AtomicLong SUM = new AtomicLong();

    private static void add(int number) {
        for (int rest = number; rest > 0; rest /= 10) {
            SUM.addAndGet(rest % 10);
        }
    }

    public static void main(String[] words) throws InterruptedException {
        for (int n = 0; n < 4000; n++) {
            add(n);
        }
        System.out.println("sum " + SUM);
    }
}
